package adminhttp

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/sluicehq/sluice/internal/telemetry"
)

const (
	// heartbeat is how often a line comes where nothing happens, so that neither end, nor a proxy between, takes the
	// other for gone.
	heartbeat = 10 * time.Second
	// lineTimeout is how long a reader may take for what waits in its connection, before it is given up.
	lineTimeout = 30 * time.Second
)

// tail streams events, a line of JSON each, until the reader or the node goes. An empty line is a heartbeat; a line with
// only "dropped" tells how many events the reader was too slow for.
func (h *handler) tail(w http.ResponseWriter, r *http.Request) {
	filter, faults := tailFilter(r.URL.Query())
	if faults != nil {
		writeProblem(w, problem{Status: http.StatusBadRequest, Detail: "The filter was not understood.", Errors: faults})
		return
	}
	reader, err := h.opts.Tail.Subscribe(filter)
	if err != nil {
		writeError(w, err)
		return
	}
	defer reader.Close()
	s := stream{w, http.NewResponseController(w)}
	// The server bounds the time of whole requests; this one is bounded line by line.
	_ = s.control.SetReadDeadline(time.Time{})
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set("X-Accel-Buffering", "no") // nginx would hold lines back
	if s.send([]byte("\n")) != nil {          // the reader learns at once that it is heard
		return
	}
	h.pass(r, s, reader)
}

// pass sends events until it cannot.
func (h *handler) pass(r *http.Request, s stream, reader *telemetry.Subscription) {
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		var err error
		select {
		case <-r.Context().Done():
			return
		case <-h.opts.Health.Draining():
			return
		case e := <-reader.Events():
			err = s.line(e)
		case <-beat.C:
			err = s.send([]byte("\n"))
		}
		if n := reader.Dropped(); n > 0 && err == nil {
			err = s.line(struct {
				Dropped int64 `json:"dropped"`
			}{n})
		}
		if err != nil { // the reader is gone
			return
		}
	}
}

type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

func (s stream) line(value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return s.send(append(text, '\n'))
}

func (s stream) send(text []byte) error {
	_ = s.control.SetWriteDeadline(time.Now().Add(lineTimeout)) // where it is not supported, nothing was bounded
	if _, err := s.w.Write(text); err != nil {
		return err
	}
	return s.control.Flush()
}

func tailFilter(query url.Values) (f telemetry.Filter, faults []fault) {
	fields := map[string]*string{"namespace": &f.Namespace, "rule": &f.Rule, "user": &f.User, "tenant": &f.Tenant, "outcome": &f.Outcome}
	for name, values := range query {
		field := fields[name]
		switch {
		case len(values) > 1:
			faults = append(faults, fault{name, "is there more than once"})
		case field != nil:
			*field = values[0]
		case name == "full_ip":
			on, err := strconv.ParseBool(values[0])
			if err != nil {
				faults = append(faults, fault{name, "must be true or false"})
			}
			f.FullIP = on
		default:
			faults = append(faults, fault{name, "unknown: known are namespace, rule, user, tenant, outcome, full_ip"})
		}
	}
	return f, faults
}

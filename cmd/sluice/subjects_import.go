package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
)

// subjectImport is sluice subjects import.
type subjectImport struct {
	control
	timeout time.Duration
}

func newSubjectsImport() *cobra.Command {
	var s subjectImport
	cmd := &cobra.Command{
		Use:   "import FILE.csv",
		Short: "Put many subjects on record at once",
		Long: `import reads subjects from a CSV file, whose first line names the columns: dimension (user, tenant or api_key), id, and where wanted
tier and tier_since. It looks through the whole file first, and sends nothing when a line has a fault. The cluster takes all of it, or
nothing. Subjects that are on record already are replaced.`,
		Example: `  sluice subjects import customers.csv --reason "from billing"
  sluice subjects import customers.csv --dry-run`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.run(cmd, args[0])
		},
	}
	s.writeFlags(cmd)
	cmd.Flags().DurationVar(&s.timeout, "timeout", time.Hour, "give up after this long")
	return cmd
}

func (s *subjectImport) run(cmd *cobra.Command, name string) error {
	file, err := os.Open(filepath.Clean(name))
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	rows, err := checkRows(file)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	p := newProgress(cmd.ErrOrStderr(), sending, rows)
	answer, err := s.send(cmd.Context(), file, p)
	p.end(err)
	if err != nil {
		return err
	}
	var done struct {
		Subjects int64 `json:"subjects"`
	}
	if err := json.Unmarshal(answer, &done); err != nil {
		return fmt.Errorf("the node's answer is not understood: %w", err)
	}
	return s.tell(cmd, answer, fmt.Sprintf("%d subjects are on record", done.Subjects))
}

// maxRowFaults is how many faults of a file are told: nobody reads more.
const maxRowFaults = 20

// checkRows looks through a file and returns how many subjects it has, or what is wrong with it.
func checkRows(r io.Reader) (int64, error) {
	rows, err := newSubjectRows(bufio.NewReaderSize(r, 1<<16))
	if err != nil {
		return 0, err
	}
	var faults []error
	for n := int64(0); ; n++ {
		_, err := rows.next()
		if errors.Is(err, io.EOF) {
			if n == 0 {
				return 0, errors.New("the file has no subject")
			}
			return n, errors.Join(faults...)
		}
		if err != nil {
			if faults = append(faults, err); len(faults) == maxRowFaults {
				return 0, errors.Join(append(faults, errors.New("and perhaps more: correct these first"))...)
			}
		}
	}
}

// send streams the file as lines of JSON. When it breaks off, the request does, and the cluster takes nothing.
func (s *subjectImport) send(ctx context.Context, file io.Reader, p *progress) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	reader, writer := io.Pipe()
	written := make(chan struct{})
	go func() {
		defer close(written)
		_ = writer.CloseWithError(writeSubjects(writer, file, p))
	}()
	defer func() { // ends the writing where the node answered before it had read everything
		_ = reader.Close()
		<-written
	}()
	query := url.Values{}
	s.addCircumstances(query)
	req, err := s.request(ctx, http.MethodPost, path()+"/subjects:import?"+query.Encode(), reader)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-ndjson")
	resp, err := s.control.send(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("read the answer of %s: %w", s.url, err)
	}
	if resp.StatusCode >= http.StatusBadRequest {
		return nil, problemError(resp.StatusCode, answer)
	}
	return answer, nil
}

func writeSubjects(w io.Writer, file io.Reader, p *progress) error {
	rows, err := newSubjectRows(bufio.NewReaderSize(file, 1<<16))
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(w, 1<<16)
	lines := json.NewEncoder(out)
	for {
		subject, err := rows.next()
		if errors.Is(err, io.EOF) {
			return out.Flush()
		}
		if err != nil {
			return err
		}
		if err := lines.Encode(subject); err != nil {
			return err
		}
		p.add(1)
	}
}

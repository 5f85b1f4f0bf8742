package load

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// Metrics reads the series of a node whose names begin so, labels included, from its admin listener.
func Metrics(ctx context.Context, admin, prefix string) (map[string]float64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+admin+"/metrics", http.NoBody)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	series := map[string]float64{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, prefix) {
			continue
		}
		end := strings.LastIndexByte(line, ' ') // labels may have blanks, too
		if end < 0 {
			return nil, fmt.Errorf("%q is no series", line)
		}
		if series[line[:end]], err = strconv.ParseFloat(line[end+1:], 64); err != nil {
			return nil, err
		}
	}
	return series, nil
}

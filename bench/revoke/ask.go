package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/sluicehq/sluice/internal/testnode"
)

// answer is as much of a decision as is looked at.
type answer struct {
	Allowed bool `json:"allowed"`
	Results []struct {
		Limit int64 `json:"limit"`
	} `json:"results"`
}

// check asks a node about a user.
func check(ctx context.Context, n *testnode.Node, user string) (answer, error) {
	var a answer
	body := fmt.Sprintf(`{"subject":{"user":%q},"route":"/user"}`, user)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+n.HTTP+"/v1/check", strings.NewReader(body))
	if err != nil {
		return a, err
	}
	req.Header.Set("Content-Type", "application/json")
	text, _, err := send(req)
	if err != nil {
		return a, err
	}
	return a, json.Unmarshal(text, &a)
}

// keyTaken tells whether a node takes an API key: its rule then tells its limit.
func keyTaken(ctx context.Context, n *testnode.Node, key string) (bool, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+n.HTTP+"/v1/forward-auth", http.NoBody)
	if err != nil {
		return false, err
	}
	req.Header.Set("X-Forwarded-Method", "GET")
	req.Header.Set("X-Forwarded-Uri", "/key")
	req.Header.Set("X-Forwarded-For", "203.0.113.7")
	req.Header.Set("X-API-Key", key)
	_, header, err := send(req)
	return header.Get("X-RateLimit-Limit") != "", err
}

func send(req *http.Request) ([]byte, http.Header, error) {
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= http.StatusInternalServerError {
		err = fmt.Errorf("%s: %s", resp.Status, text)
	}
	return text, resp.Header, err
}

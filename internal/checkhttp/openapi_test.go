package checkhttp_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"
)

// contract is api/openapi.yaml.
func contract(tb testing.TB) *openapi3.T {
	tb.Helper()
	doc, err := openapi3.NewLoader().LoadFromFile("../../api/openapi.yaml")
	if err != nil {
		tb.Fatal(err)
	}
	return doc
}

func TestOpenAPI_IsValidAndItsExamplesToo(t *testing.T) {
	t.Parallel()
	doc := contract(t)
	if err := doc.Validate(t.Context(), openapi3.EnableExamplesValidation()); err != nil {
		t.Fatal(err)
	}
	var missing []string
	for _, path := range []string{"/v1/check", "/v1/check/batch", "/v1/peek", "/v1/explain", "/v1/refund", "/v1/reset", "/v1/status", "/v1/rules", "/v1/tail", "/v1/inspect"} {
		if doc.Paths.Find(path) == nil {
			missing = append(missing, path)
		}
	}
	if len(missing) > 0 {
		t.Errorf("undescribed: %v", missing)
	}
}

// contractChecker holds exchanges against the contract.
type contractChecker struct {
	router routers.Router
}

func newContractChecker(tb testing.TB) contractChecker {
	tb.Helper()
	doc := contract(tb)
	doc.Servers = nil // the tests' servers have other addresses
	router, err := legacy.NewRouter(doc)
	if err != nil {
		tb.Fatal(err)
	}
	return contractChecker{router}
}

// do sends a body through the handler and fails the test when the answer is not as the contract says.
func (c contractChecker) do(t *testing.T, h http.Handler, path, body string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)

	asked := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body))
	asked.Header.Set("Content-Type", "application/json")
	route, params, err := c.router.FindRoute(asked)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	in := &openapi3filter.RequestValidationInput{Request: asked, PathParams: params, Route: route}
	if err := openapi3filter.ValidateRequest(t.Context(), in); (err != nil) != (w.Code == http.StatusBadRequest) {
		t.Errorf("%s %s: status %d, but the contract says: %v", path, body, w.Code, err)
	}
	out := &openapi3filter.ResponseValidationInput{RequestValidationInput: in, Status: w.Code, Header: w.Header()}
	out.SetBodyBytes(w.Body.Bytes())
	if err := openapi3filter.ValidateResponse(t.Context(), out); err != nil {
		t.Errorf("%s %s: answer %d %s is not as the contract says: %v", path, body, w.Code, w.Body, err)
	}
	return w
}

func decodeBody(t *testing.T, w *httptest.ResponseRecorder, into any) {
	t.Helper()
	if err := json.Unmarshal(w.Body.Bytes(), into); err != nil {
		t.Fatalf("%s: %v", w.Body, err)
	}
	if kind := w.Header().Get("Content-Type"); kind != "application/json" && kind != "application/problem+json" {
		t.Errorf("Content-Type %q", kind)
	}
}

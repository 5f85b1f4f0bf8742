package smuggle

import (
	"fmt"
	"strings"
)

// hiddenRequest is what an attacker wants the upstream to take for a request of its own.
const hiddenRequest = "GET " + Hidden + " HTTP/1.1\r\nHost: gw\r\n\r\n"

// Corpus returns all cases.
func Corpus() []Case {
	var all []Case
	for _, list := range [][]Case{bothLengths(), transferEncodings(), contentLengths(), chunks(), heads(), hops()} {
		all = append(all, list...)
	}
	return number(all)
}

// post is a request for the target with these header lines and body.
func post(lines, body string) string {
	return "POST " + target + " HTTP/1.1\r\nHost: gw\r\n" + lines + "\r\n" + body
}

// chunked is a body that hides a request, as two encodings see it: its end by chunks, and its whole length.
const chunked = "0\r\n\r\n" + hiddenRequest

func length(body string) string { return fmt.Sprintf("Content-Length: %d\r\n", len(body)) }

func bothLengths() []Case {
	inside := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(hiddenRequest), hiddenRequest)
	return []Case{
		{Name: "length, then chunked", Raw: post(length(chunked)+"Transfer-Encoding: chunked\r\n", chunked), Most: 1},
		{Name: "chunked, then length", Raw: post("Transfer-Encoding: chunked\r\n"+length(chunked), chunked), Most: 1},
		{Name: "chunked with a short length", Raw: post("Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", inside), Most: 1},
		{Name: "chunked in capitals and length", Raw: post("Transfer-Encoding: CHUNKED\r\n"+length(chunked), chunked), Most: 1},
		{Name: "chunked in HTTP/1.0", Raw: "POST " + target + " HTTP/1.0\r\nHost: gw\r\nTransfer-Encoding: chunked\r\n" + length(chunked) + "\r\n" + chunked, Most: 1},
		{Name: "request hidden in a body", Raw: post(length(hiddenRequest), hiddenRequest), Most: 1},
		{Name: "request hidden in a GET's body", Raw: "GET " + target + " HTTP/1.1\r\nHost: gw\r\n" + length(hiddenRequest) + "\r\n" + hiddenRequest, Most: 1},
		{Name: "request hidden in a chunk", Raw: post("Transfer-Encoding: chunked\r\n", inside), Most: 1},
	}
}

// transferEncodings are spellings of chunked that one server takes and another does not.
func transferEncodings() []Case {
	var all []Case
	for name, line := range map[string]string{
		"unknown coding":                 "Transfer-Encoding: xchunked",
		"space before the colon":         "Transfer-Encoding : chunked",
		"tab before the colon":           "Transfer-Encoding\t: chunked",
		"tab after the colon":            "Transfer-Encoding:\tchunked",
		"two lines, the second unknown":  "Transfer-Encoding: chunked\r\nTransfer-Encoding: x",
		"two lines, the first unknown":   "Transfer-Encoding: x\r\nTransfer-Encoding: chunked",
		"two lines, both chunked":        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
		"chunked, identity":              "Transfer-Encoding: chunked, identity",
		"identity":                       "Transfer-Encoding: identity",
		"gzip, chunked":                  "Transfer-Encoding: gzip, chunked",
		"chunked, chunked":               "Transfer-Encoding: chunked, chunked",
		"vertical tab":                   "Transfer-Encoding:\vchunked",
		"quoted":                         `Transfer-Encoding: "chunked"`,
		"null at the end":                "Transfer-Encoding: chunked\x00",
		"with a parameter":               "Transfer-Encoding: chunked;q=1",
		"folded":                         "Transfer-Encoding:\r\n chunked",
		"folded into another field":      "X-First: x\r\n Transfer-Encoding: chunked",
		"after a bare line feed":         "X-First: x\nTransfer-Encoding: chunked",
		"after a bare carriage return":   "X-First: x\rTransfer-Encoding: chunked",
		"a line feed before the colon":   "Transfer-Encoding\n: chunked",
		"with underscores":               "Transfer_Encoding: chunked",
		"empty":                          "Transfer-Encoding:",
		"with a comma":                   "Transfer-Encoding: ,chunked",
		"not ASCII":                      "Transfer-Encoding: chun\u212aed",
		"non-breaking space in the name": "Transfer-Encoding\u00a0: chunked",
	} {
		all = append(all, Case{Name: "transfer-encoding, " + name, Raw: post(length(chunked)+line+"\r\n", chunked), Most: 1})
	}
	return all
}

func contentLengths() []Case {
	body := "hello" + hiddenRequest
	var all []Case
	for name, lines := range map[string]string{
		"two that differ":        "Content-Length: 5\r\n" + strings.TrimSuffix(length(body), "\r\n"),
		"two that differ, other": length(body) + "Content-Length: 5",
		"a list":                 "Content-Length: 5, 5",
		"a list that differs":    fmt.Sprintf("Content-Length: 5, %d", len(body)),
		"plus":                   "Content-Length: +5",
		"minus":                  "Content-Length: -5",
		"hexadecimal":            "Content-Length: 0x5",
		"two numbers":            "Content-Length: 5 5",
		"underscore":             "Content-Length: 5_0",
		"vertical tab":           "Content-Length: 5\v",
		"null":                   "Content-Length: 5\x00",
		"too large":              "Content-Length: 99999999999999999999",
		"wraps at 64 bits":       "Content-Length: 18446744073709551621",
		"empty":                  "Content-Length:",
		"space before the colon": "Content-Length : 5",
		"decimal point":          "Content-Length: 5.0",
		"letters":                "Content-Length: five",
	} {
		all = append(all, Case{Name: "content-length, " + name, Raw: post(lines+"\r\n", body), Most: 0})
	}
	// Here everyone sees the same length, once the message is taken at all. A folded line may be joined, by RFC 9112.
	return append(all,
		Case{Name: "content-length, two that are equal", Raw: post("Content-Length: 5\r\nContent-Length: 5\r\n", "hello"), Most: 1},
		Case{Name: "content-length, folded", Raw: post("Content-Length:\r\n 5\r\n", "hello"), Most: 1},
		Case{Name: "content-length, zeros in front", Raw: post("Content-Length: 0005\r\n", "hello"), Most: 1},
		Case{Name: "content-length, ended by a bare line feed", Raw: post("Content-Length: 5\n", "hello"), Most: 1},
	)
}

func chunks() []Case {
	var all []Case
	for name, body := range map[string]string{
		"hexadecimal prefix":               "0x1\r\na\r\n0\r\n\r\n",
		"space before the size":            " 1\r\na\r\n0\r\n\r\n",
		"space after the size":             "1 \r\na\r\n0\r\n\r\n",
		"negative size":                    "-1\r\na\r\n0\r\n\r\n",
		"plus":                             "+1\r\na\r\n0\r\n\r\n",
		"size that overflows":              "fffffffffffffffff1\r\na\r\n0\r\n\r\n",
		"more data than the size":          "1\r\nab\r\n0\r\n\r\n" + hiddenRequest,
		"no line end after the data":       "1\r\na0\r\n\r\n" + hiddenRequest,
		"bare line feed after the size":    "1\na\r\n0\r\n\r\n" + hiddenRequest,
		"bare line feed after the data":    "1\r\na\n0\r\n\r\n" + hiddenRequest,
		"bare line feed in an extension":   "1;x\na\r\n0\r\n\r\n" + hiddenRequest,
		"extension that hides a line":      "1;\nab\r\n0\r\n\r\n" + hiddenRequest,
		"carriage return in an extension":  "1;a\rb\r\na\r\n0\r\n\r\n" + hiddenRequest,
		"long extension":                   "1;" + strings.Repeat("x", 70_000) + "\r\na\r\n0\r\n\r\n",
		"many extensions":                  strings.Repeat("1;"+strings.Repeat("x", 200)+"\r\na\r\n", 200) + "0\r\n\r\n",
		"last chunk of several zeros":      "1\r\na\r\n0000\r\n\r\n",
		"trailer that sets a length":       "1\r\na\r\n0\r\nContent-Length: 50\r\nTransfer-Encoding: chunked\r\n\r\n",
		"trailer that names a host":        "0\r\nHost: evil\r\nX-Forwarded-For: 1.2.3.4\r\n\r\n",
		"trailer that is none":             "0\r\n" + hiddenRequest + "\r\n",
		"bare line feed after the trailer": "0\r\n\n" + hiddenRequest,
		"size of letters":                  "g\r\na\r\n0\r\n\r\n",
		"empty size":                       "\r\na\r\n0\r\n\r\n",
	} {
		all = append(all, Case{Name: "chunk, " + name, Raw: post("Transfer-Encoding: chunked\r\n", body), Most: 1})
	}
	return all
}

func heads() []Case {
	var all []Case
	for name, raw := range map[string]string{
		"bare line feeds":              "GET " + target + " HTTP/1.1\nHost: gw\n\n",
		"bare carriage returns":        "GET " + target + " HTTP/1.1\rHost: gw\r\r",
		"folded field":                 "GET " + target + " HTTP/1.1\r\nHost: gw\r\nX-A: b\r\n c\r\n\r\n",
		"null in a value":              "GET " + target + " HTTP/1.1\r\nHost: gw\r\nX-A: b\x00c\r\n\r\n",
		"carriage return in a value":   "GET " + target + " HTTP/1.1\r\nHost: gw\r\nX-A: b\rGET " + Hidden + "\r\n\r\n",
		"space in a name":              "GET " + target + " HTTP/1.1\r\nHost: gw\r\nX A: b\r\n\r\n",
		"line without a colon":         "GET " + target + " HTTP/1.1\r\nHost: gw\r\nGET " + Hidden + " HTTP/1.1\r\n\r\n",
		"empty name":                   "GET " + target + " HTTP/1.1\r\nHost: gw\r\n: x\r\n\r\n",
		"empty lines in front":         "\r\n\r\nGET " + target + " HTTP/1.1\r\nHost: gw\r\n\r\n",
		"two versions":                 "GET " + target + " HTTP/1.1 HTTP/1.1\r\nHost: gw\r\n\r\n",
		"space in the target":          "GET " + target + " " + Hidden + " HTTP/1.1\r\nHost: gw\r\n\r\n",
		"two spaces":                   "GET  " + target + " HTTP/1.1\r\nHost: gw\r\n\r\n",
		"tab instead of a space":       "GET\t" + target + "\tHTTP/1.1\r\nHost: gw\r\n\r\n",
		"version 1.2":                  "GET " + target + " HTTP/1.2\r\nHost: gw\r\n\r\n",
		"version 2.0":                  "GET " + target + " HTTP/2.0\r\nHost: gw\r\n\r\n",
		"no version":                   "GET " + target + "\r\n\r\n",
		"two hosts":                    "GET " + target + " HTTP/1.1\r\nHost: gw\r\nHost: evil\r\n\r\n",
		"no host":                      "GET " + target + " HTTP/1.1\r\n\r\n",
		"host with a line in it":       "GET " + target + " HTTP/1.1\r\nHost: gw\r\n evil\r\n\r\n",
		"host with a path":             "GET " + target + " HTTP/1.1\r\nHost: gw/evil?\r\n\r\n",
		"line end in the path":         "GET " + target + "%0d%0aX:%20HTTP/1.1%0d%0a%0d%0aGET%20" + Hidden + " HTTP/1.1\r\nHost: gw\r\n\r\n",
		"lower case method":            "get " + target + " HTTP/1.1\r\nHost: gw\r\n\r\n",
		"method with a line in it":     "GET" + "\r\n " + target + " HTTP/1.1\r\nHost: gw\r\n\r\n",
		"preface of HTTP/2":            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"head of more than 16 KiB":     "GET " + target + " HTTP/1.1\r\nHost: gw\r\nX-A: " + strings.Repeat("x", 20<<10) + "\r\n\r\n",
		"target of more than 16 KiB":   "GET " + target + "?" + strings.Repeat("x", 20<<10) + " HTTP/1.1\r\nHost: gw\r\n\r\n",
		"target that is a whole URL":   "GET http://evil" + Hidden + " HTTP/1.1\r\nHost: gw\r\n\r\n",
		"TLS where it is not spoken":   "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
		"answer instead of a question": "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
	} {
		all = append(all, Case{Name: "head, " + name, Raw: raw, Most: 1})
	}
	return all
}

// hops name fields that a proxy would drop on the way, and switch protocols.
func hops() []Case {
	var all []Case
	for name, lines := range map[string]string{
		"connection names the length":   "Connection: Content-Length\r\n" + length(hiddenRequest),
		"connection names the host":     "Connection: Host, Content-Length\r\n" + length(hiddenRequest),
		"connection names the encoding": "Connection: Transfer-Encoding\r\n" + length(hiddenRequest),
		"upgrade to h2c":                "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n" + length(hiddenRequest),
		"expects to go on":              "Expect: 100-continue\r\n" + length(hiddenRequest),
		"expects something else":        "Expect: 200-ok\r\n" + length(hiddenRequest),
		"expects to go on, spelled odd": "Expect: y 100-continue\r\n" + length(hiddenRequest),
		"keep-alive is a list":          "Connection: keep-alive, close, x\r\nKeep-Alive: timeout=5\r\n" + length(hiddenRequest),
		"proxy connection":              "Proxy-Connection: keep-alive\r\nProxy-Authorization: Basic eDp5\r\n" + length(hiddenRequest),
	} {
		all = append(all, Case{Name: "hop, " + name, Raw: post(lines, hiddenRequest), Most: 1})
	}
	return all
}

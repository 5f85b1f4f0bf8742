package testredis

import (
	"bufio"
	"reflect"
	"strings"
	"testing"
)

func TestDecode_ReadsEveryKindOfReply(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		in   string
		want any // nil with an in of "$-1" and "*-1" only
		ok   bool
	}{
		{"+OK\r\n", "OK", true},
		{"-ERR no\r\n", ReplyError("ERR no"), true},
		{":-7\r\n", int64(-7), true},
		{"$4\r\na\r\nb\r\n", "a\r\nb", true},
		{"$0\r\n\r\n", "", true},
		{"$-1\r\n", nil, true},
		{"*-1\r\n", nil, true},
		{"*0\r\n", []any{}, true},
		{"*3\r\n:1\r\n$-1\r\n*1\r\n-ERR no\r\n", []any{int64(1), nil, []any{ReplyError("ERR no")}}, true},
		{"", nil, false},
		{"\r\n", nil, false},
		{"+OK", nil, false},
		{":x\r\n", nil, false},
		{"?1\r\n", nil, false},
		{"$4\r\nab\r\n", nil, false},
		{"$9223372036854775807\r\nab\r\n", nil, false},
		{"*9223372036854775807\r\n:1\r\n", nil, false},
	} {
		got, err := decode(bufio.NewReader(strings.NewReader(tc.in)))
		if ok := err == nil; ok != tc.ok || ok && !reflect.DeepEqual(got, tc.want) {
			t.Errorf("decode(%q) = %#v, %v, want %#v, ok %v", tc.in, got, err, tc.want, tc.ok)
		}
	}
}

// FuzzDecode: what encode writes, decode reads back, and nothing makes decode panic.
func FuzzDecode(f *testing.F) {
	f.Add("*1\r\n$1\r\na\r\n", "a")
	f.Add("*2\r\n*-1\r\n:9\r\n", "\r\n")
	f.Fuzz(func(t *testing.T, wire, arg string) {
		_, _ = decode(bufio.NewReader(strings.NewReader(wire)))
		got, err := decode(bufio.NewReader(strings.NewReader(encode([]string{arg, wire}))))
		if want := []any{arg, wire}; err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("decode(encode(%q)) = %#v, %v", want, got, err)
		}
	})
}

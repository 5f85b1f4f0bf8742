package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/sluicehq/sluice/internal/ruledoc"
)

func TestParseLimit_ReadsWhatPeopleWrite(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]ruledoc.Limit{
		"500 per 1h":                      {Limit: 500, Window: ruledoc.Duration(time.Hour)},
		" Sliding_Log  5 per 1m ":         {Algorithm: "sliding_log", Limit: 5, Window: ruledoc.Duration(time.Minute)},
		"token_bucket 10 per 1s burst 20": {Algorithm: "token_bucket", Limit: 10, Window: ruledoc.Duration(time.Second), Burst: 20},
		"fixed_window 1 per 7d":           {Algorithm: "fixed_window", Limit: 1, Window: ruledoc.Duration(7 * 24 * time.Hour)},
	} {
		if got, err := parseLimit(text); err != nil || got != want {
			t.Errorf("%q: got %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "500", "500 per", "500/1h", "many per 1h", "5 per soon", "0 per 1h", "5 per 1h burst", "5 per 1h burst 3", "leaky 5 per 1h", "5 per 1h or 2"} {
		if got, err := parseLimit(text); err == nil || exitCode(err) != exitUsage {
			t.Errorf("%q: got %+v, %v, want a mistake", text, got, err)
		}
	}
}

func FuzzParseLimit(f *testing.F) {
	f.Add("token_bucket 10 per 1s burst 20")
	f.Add("500 per 1h")
	f.Fuzz(func(t *testing.T, text string) {
		l, err := parseLimit(text)
		if err != nil {
			return
		}
		again, err := parseLimit(showLimits([]ruledoc.Limit{l}))
		if l.Algorithm == "sliding_window" {
			l.Algorithm = "" // the default is not shown
		}
		if err != nil || again != l {
			t.Errorf("%q: shown as %q and read as %+v, %v", text, showLimits([]ruledoc.Limit{l}), again, err)
		}
	})
}

func TestParseInstant_TakesTimesAndDistances(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"": {}, "24h": now.Add(24 * time.Hour), "30d": now.AddDate(0, 0, 30), "2026-12-01T00:00:00Z": time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC),
	} {
		if got, err := parseInstant(text, now); err != nil || !got.Equal(want) {
			t.Errorf("%q: got %s, %v, want %s", text, got, err, want)
		}
	}
	if _, err := parseInstant("tomorrow", now); err == nil {
		t.Error("tomorrow was taken")
	}
}

func TestSubjectRows_TellTheLineOfAFault(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                             "first line names",
		"dimension,name\n":                             `column "name"`,
		"dimension,tier\n":                             "no column id",
		"id,dimension,id\n":                            "once",
		"dimension,id\n":                               "no subject",
		"dimension,id\nuser,a\nip,192.0.2.1\n":         "line 3: dimension",
		"dimension,id\nuser,\n":                        "line 2: the id",
		"dimension,id\nuser,a,b\n":                     "wrong number of fields",
		"dimension,id\nuser,\"a\n":                     "quote",
		"dimension,id,tier_since\nuser,a,soon":         "line 2: tier_since",
		"dimension,id\nuser,\xff\n":                    "UTF-8",
		"dimension,id\n" + "x,a\n" + "y,b\n":           "line 3",
		"dimension,id\n" + strings.Repeat("x,a\n", 99): "perhaps more",
	} {
		if _, err := checkRows(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: got %v, want %q", text, err, want)
		}
	}
	n, err := checkRows(strings.NewReader("\ufeffID, Dimension,tier_since,tier\r\nu_1,user,2026-11-15,pro\r\n\"a,\"\"b\",tenant,,\r\n"))
	if n != 2 || err != nil {
		t.Errorf("got %d, %v, want 2", n, err)
	}
}

func FuzzSubjectRows(f *testing.F) {
	f.Add("dimension,id,tier,tier_since\nuser,u_42,pro,2026-11-15\ntenant,\"a b\",,\n")
	f.Fuzz(func(t *testing.T, text string) {
		n, err := checkRows(strings.NewReader(text))
		if err != nil {
			return
		}
		var out bytes.Buffer
		if err := writeSubjects(&out, strings.NewReader(text), newProgress(&bytes.Buffer{}, sending, n)); err != nil {
			t.Fatalf("%v, after the file was found good", err)
		}
		if got := int64(bytes.Count(out.Bytes(), []byte("\n"))); got != n {
			t.Errorf("%d lines are sent of %d subjects", got, n)
		}
	})
}

func TestYAML_SaysWhatTheJSONSays(t *testing.T) {
	t.Parallel()
	text := `{"z":1,"a":[true,null,"no","12","a: b\n\u001b[2J😀",-1.5e3,9223372036854775807],"empty":{},"none":[],"yes":{"deep":["x",{"y":""}]}}`
	var out bytes.Buffer
	if err := (&form{value: "yaml"}).printJSON(&out, []byte(text)); err != nil {
		t.Fatal(err)
	}
	var got any
	if err := yaml.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatalf("%v in\n%s", err, &out)
	}
	back, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	var a, b any
	_ = json.Unmarshal([]byte(text), &a)
	_ = json.Unmarshal(back, &b)
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	if !bytes.Equal(x, y) || strings.Contains(out.String(), "\x1b") || !strings.HasPrefix(out.String(), "z: 1\n") {
		t.Errorf("got\n%s", &out)
	}
	if err := (&form{value: "yaml"}).printJSON(&out, []byte(`{"a":`)); err == nil {
		t.Error("half an answer was taken")
	}
}

func TestCompareLines_LeadsFromOneTextToTheOther(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{{"", ""}, {"a\nb\nc", "a\nx\nc"}, {"a", ""}, {"", "a\nb"}, {"a\nb\na\nb", "b\na"}, {strings.Repeat("a\n", 2000), strings.Repeat("b\n", 2000)}} {
		var before, after []string
		for _, line := range compareLines(lines(c[0]), lines(c[1])) {
			if line.sign != "+" {
				before = append(before, line.text)
			}
			if line.sign != "-" {
				after = append(after, line.text)
			}
		}
		if strings.Join(before, "\n") != strings.TrimSuffix(c[0], "\n") || strings.Join(after, "\n") != strings.TrimSuffix(c[1], "\n") {
			t.Errorf("%.20q to %.20q: got %q and %q", c[0], c[1], before, after)
		}
	}
}

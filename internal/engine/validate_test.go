package engine_test

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/engine"
)

func TestValidate_TellsEveryFaultInAFixedOrder(t *testing.T) {
	t.Parallel()
	req := sluice.Request{
		Namespace:  strings.Repeat("n", 129),
		Subject:    sluice.Subject{Tenant: "\xff", User: strings.Repeat("ü", 256), Tier: strings.Repeat("ü", 255)},
		Route:      strings.Repeat("r", 1025),
		Method:     strings.Repeat("M", 33),
		Attributes: map[string]string{"b": strings.Repeat("v", 1025), "a": "\xff", "": "x"},
		Cost:       -1,
	}
	want := "[attributes attributes.a attributes.b cost method namespace route subject.tenant subject.user subject.ip]"
	for range 20 { // maps have no order
		_, err := engine.Validate(&req, "192.0.2.1:80")
		if !errors.Is(err, sluice.ErrInvalidRequest) {
			t.Fatalf("%v, want ErrInvalidRequest", err)
		}
		var got []string
		for _, f := range engine.FaultsOf(err) {
			got = append(got, f.Field())
		}
		if fmt.Sprint(got) != want {
			t.Fatalf("faults of %v\nwant %s", got, want)
		}
	}
}

func TestValidate_BoundsAttributes(t *testing.T) {
	t.Parallel()
	req := sluice.Request{Attributes: map[string]string{}}
	for i := range engine.MaxAttributes {
		req.Attributes[fmt.Sprint(i)] = ""
	}
	if _, err := engine.Validate(&req, ""); err != nil {
		t.Errorf("%d attributes: %v", len(req.Attributes), err)
	}
	req.Attributes["one more"] = ""
	if _, err := engine.Validate(&req, ""); err == nil {
		t.Errorf("%d attributes are accepted", len(req.Attributes))
	}
}

func TestValidate_ReadsAddresses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"192.0.2.1": "192.0.2.1", "::ffff:192.0.2.1": "192.0.2.1", "2001:db8::1": "2001:db8::1", "fe80::1%eth0": "fe80::1",
		"": "invalid IP", "192.0.2.256": "", "192.0.2.1/24": "", "[::1]": "", " ::1": "", strings.Repeat("1", 5000): "",
	} {
		got, err := engine.Validate(&sluice.Request{}, text)
		if (err != nil) != (want == "") || err == nil && got.String() != want {
			t.Errorf("%.40q: %v, %v, want %q", text, got, err, want)
		}
		if err != nil && len(err.Error()) > 300 {
			t.Errorf("%.40q: the error repeats it: %d bytes", text, len(err.Error()))
		}
	}
}

func TestFault_PointsIntoJSON(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		path           []string
		field, pointer string
	}{
		{nil, "", "#"},
		{[]string{"subject", "ip"}, "subject.ip", "#/subject/ip"},
		{[]string{"requests", "3", "cost"}, "requests[3].cost", "#/requests/3/cost"},
		{[]string{"attributes", "a/b~c"}, "attributes.a/b~c", "#/attributes/a~1b~0c"},
	} {
		f := engine.Fault{Path: c.path}
		if f.Field() != c.field || f.Pointer() != c.pointer {
			t.Errorf("%q: %q and %q, want %q and %q", c.path, f.Field(), f.Pointer(), c.field, c.pointer)
		}
	}
}

// FuzzValidate: what is accepted has an address that reads the same again, and asking twice gives one answer.
func FuzzValidate(f *testing.F) {
	f.Add("u", "/", "a", "b", "::1", int64(1))
	f.Add("\xff", "", "", "", "1.2.3.4:5", int64(-1))
	f.Fuzz(func(t *testing.T, user, route, name, value, ip string, cost int64) {
		req := sluice.Request{Subject: sluice.Subject{User: user}, Route: route, Attributes: map[string]string{name: value}, Cost: cost}
		addr, err := engine.Validate(&req, ip)
		again, errAgain := engine.Validate(&req, ip)
		if fmt.Sprint(err) != fmt.Sprint(errAgain) || addr != again {
			t.Fatalf("%v, %v and then %v, %v", addr, err, again, errAgain)
		}
		if err == nil && ip != "" {
			if parsed, err := netip.ParseAddr(addr.String()); err != nil || parsed != addr {
				t.Fatalf("%q was read as %v", ip, addr)
			}
		}
	})
}

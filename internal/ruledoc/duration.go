package ruledoc

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Duration is written as "250ms", "1h30m" or, in whole days, "7d".
type Duration time.Duration

const (
	day     = 24 * time.Hour
	maxDays = int64(math.MaxInt64 / day) // beyond it a time.Duration overflows
)

// Std returns the standard library's type.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// UnmarshalText reads a duration.
func (d *Duration) UnmarshalText(text []byte) error {
	s := string(text)
	if days, found := strings.CutSuffix(s, "d"); found {
		if n, err := strconv.ParseInt(days, 10, 64); err == nil && n >= -maxDays && n <= maxDays {
			*d = Duration(time.Duration(n) * day)
			return nil
		}
	}
	v, err := time.ParseDuration(s)
	if err != nil {
		return fmt.Errorf("%q is not a duration: write it as \"500ms\", \"1m\", \"1h30m\" or \"7d\"", s)
	}
	*d = Duration(v)
	return nil
}

// MarshalText writes a duration, without zero parts: "1h", not "1h0m0s".
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// String is what MarshalText writes.
func (d Duration) String() string {
	std := d.Std()
	if std >= 2*day && std%day == 0 {
		return strconv.FormatInt(int64(std/day), 10) + "d"
	}
	s := std.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// IsZero lets encoders leave a zero duration out.
func (d Duration) IsZero() bool { return d == 0 }

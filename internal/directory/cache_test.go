package directory

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/sluicehq/sluice/internal/registry"
)

func TestCache_KeepsWhatIsUsedAndLetsGoOfWhatIsNot(t *testing.T) {
	t.Parallel()
	c := newCache(8000, 1<<20)
	r := &record{tier: "pro"}
	for i := range 200_000 {
		if i%100 == 0 { // 1,000 regulars among those who come once
			for j := i % 1000 / 100; j < 1000; j += 10 {
				n := c.nameOf(user, fmt.Sprint("regular-", j))
				if found, _ := c.get(n); found == nil {
					c.put(n, r, tick(i))
				}
			}
		}
		c.put(c.nameOf(user, fmt.Sprint("once-", i)), r, tick(i))
	}
	kept := 0
	for j := range 1000 {
		if found, _ := c.get(c.nameOf(user, fmt.Sprint("regular-", j))); found != nil {
			kept++
		}
	}
	if kept < 950 {
		t.Errorf("%d of 1,000 regulars kept in a table of 8,192", kept)
	}
}

func TestCache_StaysWithinItsBytes(t *testing.T) {
	t.Parallel()
	const most = 100_000
	c := newCache(8000, most)
	for i := range 20_000 {
		r := &record{tier: "pro", exempt: true}
		r.weigh()
		n := c.nameOf(user, fmt.Sprint(i))
		c.put(n, r, 0)
		if got := c.rich.Load(); got > most+1000 {
			t.Fatalf("%d bytes after %d heavy records, want at most %d", got, i+1, most)
		}
		if found, _ := c.get(n); found != r {
			t.Fatal("what was put last is gone")
		}
	}
	for i := range 20_000 {
		c.drop(c.nameOf(user, fmt.Sprint(i)))
	}
	if got := c.rich.Load(); got != 0 {
		t.Errorf("%d bytes in an empty cache", got)
	}
}

func TestCache_TakesLittleMemoryForPlainSubjects(t *testing.T) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	c := newCache(1<<18, 1<<20)
	r := &record{tier: "pro"}
	for i := range 1 << 18 {
		c.put(c.nameOf(user, fmt.Sprint(i)), r, 0)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if got := int64(after.HeapAlloc) - int64(before.HeapAlloc); got > 10<<20 {
		t.Errorf("262,144 subjects take %d bytes", got)
	}
	runtime.KeepAlive(c)
}

func TestCache_TellsDimensionsApart(t *testing.T) {
	t.Parallel()
	c := newCache(1024, 1<<20)
	c.put(c.nameOf(user, "ann"), &record{tier: "pro"}, 0)
	for _, d := range []dimension{apiKey, tenant} {
		if found, _ := c.get(c.nameOf(d, "ann")); found != nil {
			t.Errorf("the %s ann has what is on record about the user", d)
		}
	}
}

func FuzzOpen(f *testing.F) {
	r := &Redis{secret: []byte("secret")}
	f.Add([]byte(stone))
	f.Add(r.seal("key", registry.Record{}))
	f.Add(r.seal("key", registry.Record{Found: true, Tier: "pro", Key: &registry.Key{Owner: "ann"}}))
	f.Fuzz(func(t *testing.T, text []byte) {
		if found := r.open("other key", text); found != nil {
			t.Errorf("%q was taken for another's record", text)
		}
		// Signed, so that the body is read.
		if found := r.open("key", append(r.sign("key", text), text...)); found != nil {
			_ = new(shelf).record(*found)
			if again := r.open("key", r.seal("key", *found)); again == nil || again.Tier != found.Tier {
				t.Errorf("%+v became %+v", found, again)
			}
		}
	})
}

func BenchmarkLiveFill(b *testing.B) {
	l := NewLive(New(nil), nil, LiveOptions{})
	l.cache.put(l.cache.nameOf(user, "ann"), &record{tier: "pro"}, 0)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			tierOf(l, "ann")
		}
	})
}

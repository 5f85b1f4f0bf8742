package oracle

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/sluicehq/sluice"
)

// A log file is one line of JSON, which tells the process and the counters, then frames of varints: a letter, and the
// fields in the order in which Writer puts them. A charge takes about 15 bytes, so a million decisions are 30 MB.

const (
	format        = "sluice-decisions-1"
	frameGroup    = 'T'
	frameGiveback = 'G'
	// maxGroup bounds what a reader believes of a group's size; a store's script takes 9 at most.
	maxGroup = 1000
)

type header struct {
	Format   string
	Process  uint32
	Counters []Counter
}

const (
	flagPassed = 1 << iota
	flagAllowed
	flagShadow
	flagLost
	flagOneShard
	modeShift = 5
)

// Writer writes one process's log. It is safe for concurrent use.
type Writer struct {
	counters []Counter

	mu       sync.Mutex
	w        *bufio.Writer
	buf      []byte
	sequence uint64
	err      error // the first one
}

// NewWriter starts a log. Close flushes it; w stays open.
func NewWriter(w io.Writer, process uint32, counters []Counter) (*Writer, error) {
	out := &Writer{counters: counters, w: bufio.NewWriterSize(w, 1<<20)}
	if err := json.NewEncoder(out.w).Encode(header{format, process, counters}); err != nil {
		return nil, fmt.Errorf("start a decision log: %w", err)
	}
	return out, nil
}

// Group writes one group as the store answered it. of[i] is the index of the counter that charges[i] went to. It
// returns the group's verdict.
func (w *Writer) Group(called, returned int64, charges []sluice.Charge, of []int) (allowed bool) {
	allowed, oneShard := true, true
	for i := range charges {
		s := &charges[i].State
		allowed = allowed && s.Err == nil && (s.Allowed || charges[i].Shadow)
		oneShard = oneShard && w.counters[of[i]].Shard == w.counters[of[0]].Shard
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	b := append(w.buf[:0], frameGroup)
	b = binary.AppendUvarint(b, w.sequence)
	w.sequence++
	b = binary.AppendVarint(b, called)
	b = binary.AppendVarint(b, returned-called)
	b = binary.AppendUvarint(b, uint64(len(charges)))
	for i := range charges {
		c := &charges[i]
		flags := uint64(c.State.Mode)<<modeShift | bit(c.State.Allowed, flagPassed) | bit(allowed, flagAllowed) |
			bit(c.Shadow, flagShadow) | bit(c.State.Err != nil, flagLost) | bit(oneShard, flagOneShard)
		b = binary.AppendUvarint(b, uint64(of[i]))
		b = binary.AppendUvarint(b, flags)
		b = binary.AppendVarint(b, c.State.Time-called)
		b = binary.AppendVarint(b, c.Cost)
		b = binary.AppendVarint(b, c.State.Remaining)
	}
	w.write(b)
	return allowed
}

// Giveback writes one return of a charge.
func (w *Writer) Giveback(g Giveback) {
	w.mu.Lock()
	defer w.mu.Unlock()
	b := append(w.buf[:0], frameGiveback)
	b = binary.AppendUvarint(b, uint64(g.Counter))
	b = binary.AppendUvarint(b, bit(g.Lost, flagLost))
	b = binary.AppendVarint(b, g.Called)
	b = binary.AppendVarint(b, g.Returned-g.Called)
	b = binary.AppendVarint(b, g.Taken-g.Called)
	b = binary.AppendVarint(b, g.Time-g.Called)
	b = binary.AppendVarint(b, g.Cost)
	b = binary.AppendVarint(b, g.Back)
	w.write(b)
}

func (w *Writer) write(frame []byte) {
	w.buf = frame
	if _, err := w.w.Write(frame); err != nil && w.err == nil {
		w.err = fmt.Errorf("write a decision log: %w", err)
	}
}

// Close flushes the log and returns the first error of any write.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.w.Flush(); err != nil && w.err == nil {
		w.err = fmt.Errorf("write a decision log: %w", err)
	}
	return w.err
}

func bit(set bool, flag uint64) uint64 {
	if set {
		return flag
	}
	return 0
}

// Read reads one process's log to its end. A log that breaks off in the middle is an error.
func Read(r io.Reader) (*Log, error) {
	in := &reader{r: bufio.NewReaderSize(r, 1<<20)}
	line, err := in.r.ReadBytes('\n')
	if err != nil {
		return nil, fmt.Errorf("read a decision log: no first line: %w", err)
	}
	var h header
	if err := json.Unmarshal(line, &h); err != nil || h.Format != format {
		return nil, fmt.Errorf("read a decision log: first line %.80q is not of format %s", line, format)
	}
	log := &Log{Counters: h.Counters}
	for frame := 0; ; frame++ {
		kind, err := in.r.ReadByte()
		if errors.Is(err, io.EOF) {
			return log, nil
		}
		switch {
		case err != nil:
			in.err = err
		case kind == frameGroup:
			in.group(log, h.Process)
		case kind == frameGiveback:
			in.giveback(log)
		default:
			in.err = fmt.Errorf("unknown kind %q", kind)
		}
		if in.err != nil {
			return nil, fmt.Errorf("read a decision log: frame %d: %w", frame, in.err)
		}
	}
}

type reader struct {
	r   *bufio.Reader
	err error // the first one; nothing is read after it
}

func (in *reader) group(log *Log, process uint32) {
	id := NewGroupID(process, uint64(in.int(false)))
	called := in.int(true)
	returned := called + in.int(true)
	n := in.int(false)
	if n < 1 || n > maxGroup {
		in.fail(fmt.Errorf("a group of %d charges", n))
	}
	for ; n > 0 && in.err == nil; n-- {
		c := Charge{Group: id, Called: called, Returned: returned, Counter: in.counter(log)}
		flags := in.int(false)
		c.Passed, c.Allowed, c.Shadow = flags&flagPassed != 0, flags&flagAllowed != 0, flags&flagShadow != 0
		c.Lost, c.OneShard = flags&flagLost != 0, flags&flagOneShard != 0
		c.Mode = sluice.Mode(flags >> modeShift)
		c.Time = called + in.int(true)
		c.Cost, c.Remaining = in.int(true), in.int(true)
		log.Charges = append(log.Charges, c)
	}
}

func (in *reader) giveback(log *Log) {
	g := Giveback{Counter: in.counter(log), Lost: in.int(false)&flagLost != 0, Called: in.int(true)}
	g.Returned = g.Called + in.int(true)
	g.Taken = g.Called + in.int(true)
	g.Time = g.Called + in.int(true)
	g.Cost, g.Back = in.int(true), in.int(true)
	log.Givebacks = append(log.Givebacks, g)
}

func (in *reader) counter(log *Log) int32 {
	i := in.int(false)
	if i < 0 || i >= int64(len(log.Counters)) {
		in.fail(fmt.Errorf("counter %d of %d", i, len(log.Counters)))
		return 0
	}
	return int32(i)
}

// int reads one number, signed or not.
func (in *reader) int(signed bool) int64 {
	if in.err != nil {
		return 0
	}
	if signed {
		n, err := binary.ReadVarint(in.r)
		in.fail(err)
		return n
	}
	n, err := binary.ReadUvarint(in.r)
	in.fail(err)
	return int64(n)
}

func (in *reader) fail(err error) {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if in.err == nil {
		in.err = err
	}
}

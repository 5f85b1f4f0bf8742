package algo

// Windows are stored as (window number mod 8)·2^50 + counts: a fixed window has one count of 50 bits, a sliding one
// the previous and the current count of 25 bits each. Three bits of window number tell the next window, two stale ones
// (a key lives two windows, seen a little late) and four to which a clock may have stepped back.

// The largest counts.
const (
	MaxSlidingLimit = 1<<25 - 1
	MaxFixedLimit   = 1<<50 - 1
)

const (
	countBits  = 25
	countMask  = 1<<countBits - 1
	numberBits = 50
	fixedMask  = 1<<numberBits - 1

	// A reply holds what remains above, and a time in the window's ticks below these bits.
	replyTimeBits = 28
	replyTimeMask = 1<<replyTimeBits - 1

	dayMillis = 86_400_000
)

// clock returns the window's length in ticks, the number of the current window and the ticks elapsed in it.
// A tick is a millisecond, for windows above a day a second: weights then stay exact below 2^53.
func (p *Plan) clock(us int64) (length, number, elapsed int64) {
	tick := int64(1000)
	length = p.Window
	if length > dayMillis {
		tick, length = 1_000_000, length/1000
	}
	now := us / tick
	return length, now / length, now % length
}

func (p *Plan) tickMicros() int64 {
	if p.Window > dayMillis {
		return 1_000_000
	}
	return 1000
}

func (p *Plan) takeFixed(v int64, has bool, us, cost int64) Outcome {
	length, number, elapsed := p.clock(us)
	count, stored := int64(0), number&7
	if has {
		switch age := (number - v>>numberBits) & 7; {
		case age == 0:
			count = v & fixedMask
		case age > 3: // the clock stepped back: go on counting in the stored window
			count, stored, elapsed = v&fixedMask, v>>numberBits, 0
		}
	}
	room := p.Limit - count - cost
	reply := room
	if room < 0 {
		reply = max(p.Limit-count, 0)
	}
	if !p.Timed() {
		reply = reply<<replyTimeBits + length - elapsed
	}
	if room < 0 {
		reply = -1 - reply
	}
	return Outcome{Reply: reply, Next: stored<<numberBits + count + cost}
}

func (p *Plan) takeSliding(v int64, has bool, us, cost int64) Outcome {
	length, number, elapsed := p.clock(us)
	var prev, cur int64
	stored := number & 7
	if has {
		storedNumber, storedPrev, storedCur := unpackSliding(v)
		switch age := (number - storedNumber) & 7; {
		case age == 0:
			prev, cur = storedPrev, storedCur
		case age == 1:
			prev = storedCur
		case age > 3: // the clock stepped back: go on counting in the stored window, the previous one in full
			prev, cur, stored, elapsed = storedPrev, storedCur, storedNumber, 0
		}
	}
	// What is left, times the window's length: an exact integer instead of a weighted fraction.
	room := (p.Limit-cur-cost)*length - prev*(length-elapsed)
	out := Outcome{Next: stored<<numberBits + prev<<countBits + cur + cost}
	if room >= 0 {
		out.Reply = room/length<<replyTimeBits + length - elapsed
		return out
	}
	var wait int64
	switch {
	case cur+cost <= p.Limit: // enough of the previous window must slide out
		wait = length - (p.Limit-cur-cost)*length/prev - elapsed
	case cost <= p.Limit: // this window must become the previous one, and enough of it slide out
		wait = length - elapsed + length - (p.Limit-cost)*length/cur
	}
	out.Reply = -1 - (max(room+cost*length, 0)/length<<replyTimeBits + wait)
	return out
}

// Continues tells that next goes on counting in the window of v.
func (p *Plan) Continues(v, next int64) bool {
	return (p.Kind == FixedWindow || p.Kind == SlidingWindow) && v>>numberBits == next>>numberBits
}

func unpackSliding(v int64) (number, prev, cur int64) {
	return v >> numberBits, v >> countBits & countMask, v & countMask
}

func (p *Plan) giveFixed(v, us, us0, cost int64) (next, credit int64) {
	_, number, _ := p.clock(us)
	_, taken, _ := p.clock(us0)
	if number != taken || v>>numberBits != number&7 {
		return v, 0
	}
	credit = min(cost, v&fixedMask)
	return v - credit, credit
}

func (p *Plan) giveSliding(v, us, us0, cost int64) (next, credit int64) {
	_, number, _ := p.clock(us)
	_, taken, _ := p.clock(us0)
	storedNumber, prev, cur := unpackSliding(v)
	// Compared by absolute number: modulo 8 a stall of eight short windows would look like none.
	switch {
	case number-taken > 1:
		return v, 0
	case storedNumber == taken&7:
		credit = min(cost, cur)
		return v - credit, credit
	case storedNumber == number&7: // the window after
		credit = min(cost, prev)
		return v - credit<<countBits, credit
	}
	return v, 0
}

func (p *Plan) readWindow(reply, us int64) Answer {
	a := Answer{Allowed: reply >= 0}
	if reply < 0 {
		reply = -1 - reply
	}
	var ticks int64
	if p.Timed() {
		length, _, elapsed := p.clock(us)
		a.Remaining, ticks = reply, length-elapsed
	} else {
		a.Remaining, ticks = reply>>replyTimeBits, reply&replyTimeMask
	}
	a.Reset = ticks * p.tickMicros()
	if !a.Allowed {
		a.Retry = a.Reset
		if ticks == 0 { // a cost that never passes; the window will have ended by then
			a.Reset = p.Window * 1000
		}
	}
	return a
}

package budget

import (
	"bytes"
	"sync"
	"unicode/utf8"
)

// Capture is a writer that keeps the head and the tail of what is written, in memory of at most its cap, and counts the rest.
// It never blocks and never fails. Safe for one writer and any reader.
type Capture struct {
	mu       sync.Mutex
	capacity int
	head     int    // bytes of buf that are never overwritten once it is full
	buf      []byte // grows to capacity; then buf[head:] is a ring
	next     int    // where the ring's oldest byte is, once full
	seen     int64
	newlines int64
	open     bool // the last line has no newline yet
}

// NewCapture keeps at most capBytes; headPercent of it from the start, the rest from the end.
func NewCapture(capBytes, headPercent int) *Capture {
	capBytes = max(0, capBytes)
	head := int(int64(capBytes) * int64(max(0, min(100, headPercent))) / 100)
	return &Capture{capacity: capBytes, head: head, next: head}
}

// Write takes all of p. It costs one copy and one count of newlines.
func (c *Capture) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	lines := int64(bytes.Count(p, newline))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen += int64(len(p))
	c.newlines += lines
	c.open = p[len(p)-1] != '\n'
	rest := c.fill(p)
	ring := c.buf[min(c.head, len(c.buf)):]
	if len(rest) == 0 || len(ring) == 0 {
		return len(p), nil
	}
	if len(rest) >= len(ring) {
		copy(ring, rest[len(rest)-len(ring):])
		c.next = c.head
		return len(p), nil
	}
	at := c.next - c.head
	n := copy(ring[at:], rest)
	copy(ring, rest[n:])
	c.next = c.head + (at+len(rest))%len(ring)
	return len(p), nil
}

var newline = []byte{'\n'}

// fill puts what fits into the free part of buf, which grows as it is needed, and returns the rest.
func (c *Capture) fill(p []byte) []byte {
	n := min(len(p), c.capacity-len(c.buf))
	if n == 0 {
		return p
	}
	if need := len(c.buf) + n; need > cap(c.buf) {
		grown := make([]byte, len(c.buf), min(c.capacity, max(need, 2*cap(c.buf), 512)))
		copy(grown, c.buf)
		c.buf = grown
	}
	c.buf = append(c.buf, p[:n]...)
	return p[n:]
}

// Snapshot is what a Capture holds now.
type Snapshot struct {
	Head, Tail   []byte // Tail is empty and Head everything where nothing was dropped
	Seen         int64  // bytes written in all
	SeenLines    int64  // lines written in all (an unfinished last line counts)
	Dropped      int64  // bytes between Head and Tail
	DroppedLines int64  // newlines within the dropped bytes
}

// Snapshot copies what is held. Where bytes were dropped, the head ends and the tail begins with a whole character: the
// pieces of one that was cut count as dropped.
func (c *Capture) Snapshot() Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := Snapshot{Seen: c.seen, SeenLines: c.newlines}
	if c.open {
		s.SeenLines++
	}
	if c.seen == int64(len(c.buf)) {
		s.Head = bytes.Clone(c.buf)
		return s
	}
	s.Head = bytes.Clone(wholeEnd(c.buf[:c.head]))
	tail := make([]byte, 0, len(c.buf)-c.head)
	tail = append(append(tail, c.buf[c.next:]...), c.buf[c.head:c.next]...)
	s.Tail = wholeStart(tail)
	s.Dropped = c.seen - int64(len(s.Head)) - int64(len(s.Tail))
	s.DroppedLines = c.newlines - int64(bytes.Count(s.Head, newline)) - int64(bytes.Count(s.Tail, newline))
	return s
}

// Next returns what was written since cursor from (a byte position; 0 is the start) and is still held, at most limit bytes,
// the position to go on from, and how many bytes before it were dropped unseen. For a Capture with headPercent 0 (a ring).
//
// data ends with a whole character as long as there is more to come, and with a whole line where one ends near limit;
// a character whose second half is not written yet is kept for the next call, unless it is all there is.
func (c *Capture) Next(from int64, limit int) (data []byte, next, lost int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	from = max(0, min(from, c.seen))
	if limit <= 0 || from == c.seen {
		return nil, from, 0
	}
	limit = min(limit, c.capacity)
	data, lost = c.held(from, limit+utf8.UTFMax-1)
	if lost > 0 {
		whole := wholeStart(data)
		lost += int64(len(data) - len(whole))
		data = whole
	}
	data = data[:min(limit, len(data))]
	next = from + lost + int64(len(data))
	whole := wholeEnd(data)
	if next < c.seen {
		whole = []byte(toLineEnd(string(whole)))
	}
	if len(whole) > 0 {
		next -= int64(len(data) - len(whole))
		data = whole
	}
	return data, next, lost
}

// held copies at most limit bytes of what is held from position from on, and says how many bytes were dropped before them.
func (c *Capture) held(from int64, limit int) (data []byte, lost int64) {
	size := int64(len(c.buf))
	if c.seen == size {
		return bytes.Clone(c.buf[from:min(size, from+int64(limit))]), 0
	}
	if from < int64(c.head) {
		return bytes.Clone(c.buf[from:min(int64(c.head), from+int64(limit))]), 0
	}
	oldest := c.seen - (size - int64(c.head))
	if from < oldest {
		lost, from = oldest-from, oldest
	}
	data = make([]byte, 0, min(int64(limit), c.seen-from))
	older, newer := c.buf[c.next:], c.buf[c.head:c.next]
	if skip := int(from - oldest); skip < len(older) {
		older = older[skip:]
	} else {
		older, newer = nil, newer[skip-len(older):]
	}
	data = append(data, older[:min(limit, len(older))]...)
	return append(data, newer[:min(limit-len(data), len(newer))]...), lost
}

// wholeEnd leaves out the begun character that b ends with.
func wholeEnd(b []byte) []byte {
	for i := len(b) - 1; i >= 0 && i >= len(b)-(utf8.UTFMax-1); i-- {
		if utf8.RuneStart(b[i]) {
			if !utf8.FullRune(b[i:]) {
				return b[:i]
			}
			break
		}
	}
	return b
}

// wholeStart leaves out the rest of a character that b begins with.
func wholeStart(b []byte) []byte {
	for i := range min(len(b), utf8.UTFMax-1) {
		if utf8.RuneStart(b[i]) {
			return b[i:]
		}
	}
	return b[min(len(b), utf8.UTFMax-1):]
}

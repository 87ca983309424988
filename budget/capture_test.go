package budget

import (
	"bytes"
	"io"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// checkSnapshot fails t where s is no exact account of all that was written.
func checkSnapshot(t interface{ Fatalf(string, ...any) }, s Snapshot, all []byte, capBytes, headPercent int) {
	if len(s.Head)+len(s.Tail) > capBytes {
		t.Fatalf("%d bytes held, cap %d", len(s.Head)+len(s.Tail), capBytes)
	}
	if !bytes.HasPrefix(all, s.Head) || !bytes.HasSuffix(all, s.Tail) {
		t.Fatalf("head %q and tail %q are not those of %q", s.Head, s.Tail, all)
	}
	if s.Seen != int64(len(all)) || s.Dropped != s.Seen-int64(len(s.Head)+len(s.Tail)) {
		t.Fatalf("%d bytes written: %+v", len(all), s)
	}
	lines := bytes.Count(all, newline)
	if len(all) > 0 && all[len(all)-1] != '\n' {
		lines++
	}
	dropped := bytes.Count(all[len(s.Head):len(all)-len(s.Tail)], newline)
	if s.SeenLines != int64(lines) || s.DroppedLines != int64(dropped) {
		t.Fatalf("%d lines, %d newlines dropped: %+v", lines, dropped, s)
	}
	if len(all) <= capBytes && (s.Dropped != 0 || len(s.Tail) != 0) {
		t.Fatalf("%d bytes fit in %d and yet %d were dropped", len(all), capBytes, s.Dropped)
	}
	kept := len(s.Head) + len(s.Tail)
	if len(all) > capBytes && kept < capBytes-2*(utf8.UTFMax-1) {
		t.Fatalf("only %d of %d bytes are used", kept, capBytes)
	}
	if want := capBytes * headPercent / 100; s.Dropped > 0 && (len(s.Head) > want || len(s.Head) < want-utf8.UTFMax+1) {
		t.Fatalf("head has %d bytes, want %d", len(s.Head), want)
	}
	if utf8.Valid(all) && (!utf8.Valid(s.Head) || !utf8.Valid(s.Tail)) {
		t.Fatalf("cut inside a code point: %q and %q", s.Head, s.Tail)
	}
}

func writeAll(t interface{ Fatalf(string, ...any) }, c *Capture, pieces [][]byte) []byte {
	var all []byte
	for _, p := range pieces {
		if n, err := c.Write(p); n != len(p) || err != nil {
			t.Fatalf("Write of %d bytes gives %d, %v", len(p), n, err)
		}
		all = append(all, p...)
	}
	return all
}

func pieces() *rapid.Generator[[][]byte] {
	piece := rapid.Custom(func(t *rapid.T) []byte {
		unit := rapid.SampledFrom([]string{"", "x", "line\n", "\n", "中", "👍", "\xff", "\xe4", "日本\n", "0123456789"}).Draw(t, "unit")
		return []byte(strings.Repeat(unit, rapid.IntRange(0, 30).Draw(t, "times")))
	})
	return rapid.SliceOfN(piece, 0, 12)
}

func TestCaptureAccountsForEveryByte(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		capBytes, head := rapid.IntRange(0, 300).Draw(t, "cap"), rapid.IntRange(0, 100).Draw(t, "head")
		c := NewCapture(capBytes, head)
		all := writeAll(t, c, pieces().Draw(t, "pieces"))
		checkSnapshot(t, c.Snapshot(), all, capBytes, head)
	})
}

// reader polls a Capture as a background task's reader does and checks what it gets against all that was written.
type reader struct {
	cursor int64
	lost   int64
	got    int64
}

func (r *reader) poll(t interface{ Fatalf(string, ...any) }, c *Capture, all []byte, capBytes, limit int) {
	data, next, lost := c.Next(r.cursor, limit)
	if len(data) > limit || lost < 0 || next != r.cursor+lost+int64(len(data)) {
		t.Fatalf("Next(%d, %d) gives %d bytes, next %d, lost %d", r.cursor, limit, len(data), next, lost)
	}
	if !bytes.Equal(data, all[r.cursor+lost:next]) {
		t.Fatalf("Next(%d, %d) gives %q, written was %q", r.cursor, limit, data, all[r.cursor+lost:next])
	}
	if must := int64(len(all)-capBytes) - r.cursor; lost > 0 && (lost < must || lost > must+utf8.UTFMax-1) {
		t.Fatalf("Next(%d, %d) says %d bytes are lost, want %d", r.cursor, limit, lost, must)
	}
	whole := utf8.Valid(all) && limit >= utf8.UTFMax && utf8.Valid(all[:r.cursor])
	if whole && !utf8.Valid(data) {
		t.Fatalf("Next(%d, %d) cuts inside a code point: %q", r.cursor, limit, data)
	}
	r.cursor, r.lost, r.got = next, r.lost+lost, r.got+int64(len(data))
}

func TestNextLosesNothingInSilence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		capBytes := rapid.IntRange(1, 200).Draw(t, "cap")
		c := NewCapture(capBytes, 0)
		var all []byte
		var r reader
		for _, p := range pieces().Draw(t, "pieces") {
			all = append(all, writeAll(t, c, [][]byte{p})...)
			if rapid.Bool().Draw(t, "poll") {
				r.poll(t, c, all, capBytes, rapid.IntRange(1, 250).Draw(t, "limit"))
			}
		}
		for polls := 0; r.cursor < int64(len(all)); polls++ {
			if polls > len(all)+1 {
				t.Fatalf("no end after %d polls at %d of %d", polls, r.cursor, len(all))
			}
			r.poll(t, c, all, capBytes, rapid.IntRange(1, 250).Draw(t, "limit"))
		}
		if r.got+r.lost != int64(len(all)) {
			t.Fatalf("%d bytes written, %d got, %d lost", len(all), r.got, r.lost)
		}
	})
}

func TestNext(t *testing.T) {
	c := NewCapture(16, 0)
	read := func(from int64, limit int, data string, next, lost int64) {
		t.Helper()
		gotData, gotNext, gotLost := c.Next(from, limit)
		if string(gotData) != data || gotNext != next || gotLost != lost {
			t.Errorf("Next(%d, %d) gives %q, %d, %d; want %q, %d, %d", from, limit, gotData, gotNext, gotLost, data, next, lost)
		}
	}
	read(0, 10, "", 0, 0)
	c.Write([]byte("half a 中")[:8])
	read(0, 100, "half a ", 7, 0)
	read(7, 100, "\xe4", 8, 0) // all there is, so it is not kept back for ever
	c.Write([]byte("half a 中")[8:])
	read(7, 100, "中", 10, 0)
	read(10, 100, "", 10, 0)
	read(99, 100, "", 10, 0)
	read(-1, 0, "", 0, 0)
	c.Write([]byte("\none\ntwo\nthree"))
	read(10, 14, "\none\ntwo\nthree", 24, 0)
	read(0, 100, "\none\ntwo\nthree", 24, 10)
	read(12, 3, "ne\n", 15, 0)
	c = NewCapture(100, 0)
	c.Write([]byte(strings.Repeat("a line of text\n", 5)))
	read(0, 64, strings.Repeat("a line of text\n", 4), 60, 0) // a line's end is near
	read(0, 70, strings.Repeat("a line of text\n", 5)[:70], 70, 0)
}

func TestSmallOutputCostsLittle(t *testing.T) {
	c := NewCapture(256<<10, 20)
	c.Write([]byte("hello\n"))
	if cap(c.buf) > 4<<10 {
		t.Errorf("6 bytes are held in %d", cap(c.buf))
	}
}

func TestMemoryStaysUnderTheCap(t *testing.T) {
	c := NewCapture(64<<10, 20)
	chunk := bytes.Repeat([]byte("all work and no play\n"), 1_560)
	for range 64 {
		c.Write(chunk)
		if cap(c.buf) > 64<<10 {
			t.Fatalf("%d bytes allocated", cap(c.buf))
		}
	}
	if allocs := testing.AllocsPerRun(100, func() { c.Write(chunk) }); allocs != 0 {
		t.Errorf("a write allocates %v times", allocs)
	}
}

func TestReadersSeeAConsistentCapture(t *testing.T) {
	const lines = 20_000
	c := NewCapture(4<<10, 30)
	var all bytes.Buffer
	for i := range lines {
		all.WriteString(strings.Repeat("中", i%50))
		all.WriteByte('\n')
	}
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			for writing := true; writing; {
				select {
				case <-done:
					writing = false
				default:
				}
				s := c.Snapshot()
				checkSnapshot(fatal{t}, s, all.Bytes()[:s.Seen], 4<<10, 30)
			}
		})
	}
	for rest := all.Bytes(); len(rest) > 0; {
		n := min(len(rest), 777)
		c.Write(rest[:n])
		rest = rest[n:]
	}
	close(done)
	readers.Wait()
	checkSnapshot(t, c.Snapshot(), all.Bytes(), 4<<10, 30)
}

// fatal lets a helper report from a goroutine that may not end the test.
type fatal struct{ t *testing.T }

func (f fatal) Fatalf(format string, args ...any) { f.t.Errorf(format, args...) }

func FuzzCapture(f *testing.F) {
	f.Add([]byte("one\ntwo\n中文"), 5, 20, uint8(3))
	f.Fuzz(func(t *testing.T, all []byte, capBytes, head int, chunk uint8) {
		capBytes, head = max(0, capBytes%4_096), max(0, head%101)
		c, ring := NewCapture(capBytes, head), NewCapture(capBytes, 0)
		var r reader
		for at := 0; at < len(all); {
			end := min(len(all), at+int(chunk)+1)
			writeAll(t, c, [][]byte{all[at:end]})
			writeAll(t, ring, [][]byte{all[at:end]})
			r.poll(t, ring, all[:end], capBytes, int(chunk)/2+1)
			at = end
		}
		checkSnapshot(t, c.Snapshot(), all, capBytes, head)
	})
}

// The cost of taking output, beside one plain copy of it and beside throwing it away.
func BenchmarkCapture(b *testing.B) {
	chunk := bytes.Repeat([]byte("y\n"), 16<<10)
	for name, w := range map[string]io.Writer{"capture": NewCapture(256<<10, 20), "copy": &copier{}, "discard": io.Discard} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(chunk)))
			for b.Loop() {
				if _, err := w.Write(chunk); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// copier is the least that anything which keeps bytes must do.
type copier struct{ buf [32 << 10]byte }

func (c *copier) Write(p []byte) (int, error) { return copy(c.buf[:], p), nil }

package secrets

import "io"

// Writer redacts what is written on its way to w, also where a secret is split over several writes. What may be the beginning of one is held
// back until it is known, at most 64 KiB; Close writes it, and leaves w open. Not for use by several goroutines at once.
func (r *Redactor) Writer(w io.Writer) io.WriteCloser { return &writer{r: r, w: w} }

// contextBytes of what was written last are looked at again: whether a word goes on is told by what stands before it.
const contextBytes = 8

type writer struct {
	r    *Redactor
	w    io.Writer
	held []byte // context, then what is not written yet
	done int    // bytes of held that are context
	seen int    // bytes of held that were looked at
}

// A stream of small pieces is not looked at again for each, once more than this is held back: what comes has to be worth it.
const (
	heldLong = 4 << 10
	worthIt  = 8 // 1/8 of what is held
)

func (w *writer) Write(p []byte) (int, error) {
	if w.r == nil {
		return w.w.Write(p)
	}
	w.held = append(w.held, p...)
	if w.seen > heldLong && len(w.held)-w.seen < w.seen/worthIt {
		return len(p), nil
	}
	if err := w.pass(false); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (w *writer) Close() error {
	if w.r == nil {
		return nil
	}
	return w.pass(true)
}

// pass writes what is certain; at the end, everything.
func (w *writer) pass(all bool) error {
	s := string(w.held)
	spans, open := w.r.find(s, w.done)
	open = min(open, w.r.begun(s, w.done), table.begun(s, w.done))
	if all || len(s)-open > maxBlock {
		open = len(s)
	}
	for i, sp := range spans {
		if sp.from >= open {
			spans = spans[:i]
			break
		}
		if sp.to > open { // it may grow
			open, spans = sp.from, spans[:i]
			break
		}
	}
	for i := range spans {
		spans[i].from -= w.done
		spans[i].to -= w.done
	}
	if open > w.done {
		if _, err := io.WriteString(w.w, w.r.replace(s[w.done:open], spans)); err != nil {
			return err
		}
	}
	keep := max(0, open-contextBytes)
	w.held = append(w.held[:0], s[keep:]...)
	w.done, w.seen = open-keep, len(w.held)
	return nil
}

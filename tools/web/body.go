package web

import (
	"bufio"
	"compress/gzip"
	"errors"
	"io"
	"strings"
)

const (
	sniffBytes = 8 << 10
	chunkBytes = 32 << 10

	// How far a body is read on beyond what is kept, to tell how much there is: so many times as much as it comes, and after decompression.
	wireFactor    = 4
	decodedFactor = 16
)

// body is what came of an answer's body.
type body struct {
	data   []byte
	seen   int64
	more   bool  // there is more than was seen
	broken error // why it ended before its end, nil where it did not
}

// wire is the body as it comes. It ends at a limit, and tells the idle timer of every byte.
type wire struct {
	a    *answer
	left int64
	over bool // the limit was reached
}

func (w *wire) Read(p []byte) (int, error) {
	if w.left == 0 {
		w.over = true
		return 0, io.EOF
	}
	n, err := w.a.resp.Body.Read(p[:min(int64(len(p)), w.left)])
	if n > 0 {
		w.left -= int64(n)
		w.a.idle.Reset(w.a.client.opts.Idle)
	}
	return n, err
}

// read keeps the first bytes of the body, after decompression, and counts the rest as far as it goes. look is shown how it begins: where it
// says no, no more is read. The error is of a body that gave nothing at all.
func (a *answer) read(keep int, look func(head []byte) bool) (body, error) {
	w := &wire{a: a, left: wireFactor * int64(keep)}
	r, err := unpacked(w, strings.Join(a.resp.Header.Values("Content-Encoding"), ","))
	if err != nil {
		return body{}, a.cut(err)
	}
	var b body
	looked := false
	chunk := make([]byte, chunkBytes)
	for err == nil && b.seen < decodedFactor*int64(keep) {
		var n int
		n, err = r.Read(chunk)
		b.seen += int64(n)
		b.data = append(b.data, chunk[:min(n, keep-len(b.data))]...)
		if !looked && (b.seen >= sniffBytes || err != nil) {
			if looked = true; !look(b.data[:min(len(b.data), sniffBytes)]) {
				b.more = err == nil
				return b, nil
			}
		}
	}
	switch {
	case err == nil, w.over:
		b.more = true
	case !errors.Is(err, io.EOF):
		b.broken = a.cut(err)
	}
	if b.broken != nil && (len(b.data) == 0 || kindOf(b.broken) == Lost && ended(a.ctx) != nil) {
		return body{}, b.broken
	}
	return b, nil
}

// unpacked undoes the one encoding that was asked for.
func unpacked(w *wire, encoding string) (io.Reader, error) {
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "", "identity":
		return w, nil
	case "gzip", "x-gzip":
		return gzip.NewReader(bufio.NewReader(w))
	}
	return nil, foreign(Lost, "the page is encoded as %s, and only gzip was asked for", oneLine(encoding))
}

// cut explains why a body ended before its end.
func (a *answer) cut(err error) error {
	var own *Error
	cause := ended(a.ctx)
	switch {
	case errors.As(err, &own):
		return own
	case errors.Is(cause, errSlow), errors.Is(cause, errIdle):
		return failure(Later, "%s did not send it to its end: %v", a.url.Host, cause)
	case cause != nil:
		return cause
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum), strings.HasPrefix(err.Error(), "flate: "):
		return failure(Lost, "what %s sent is not the gzip that it says it is", a.url.Host)
	}
	return failure(Later, "the connection to %s ended before the page did", a.url.Host)
}

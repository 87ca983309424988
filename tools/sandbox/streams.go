package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// copyBytes is the size of one read; it is what a pipe holds. A pipe that was found full once is made larger (widen), and read in larger pieces: a
// flood is drained in less than three quarters of the time then.
const (
	copyBytes  = 64 << 10
	floodBytes = 256 << 10
)

// streams are what a command reads and writes, on the way from its reader and to its writers.
type streams struct {
	stdin, stdout, stderr *os.File // the child's ends, until handedOver
	lent                  bool     // stdin is the caller's own file
	feed                  *os.File // the other end of stdin
	from                  io.Reader
	outs                  []*outlet
	running               sync.WaitGroup
}

// outlet is a pipe that is read to its end, whether or not its writer keeps up.
type outlet struct {
	r   *os.File
	w   io.Writer
	err error // of the writer, or of reading
}

// openStreams makes a pipe for the reader and for each of two different writers, one for two that are the same; nil is /dev/null.
func openStreams(stdin io.Reader, stdout, stderr io.Writer) (*streams, error) {
	s := &streams{}
	err := s.openInput(stdin)
	if err == nil {
		s.stdout, err = s.open(stdout)
	}
	if err != nil {
		s.handedOver()
		s.abandon()
		return nil, err
	}
	if stderr != nil && same(stdout, stderr) {
		s.stderr = s.stdout
		return s, nil
	}
	if s.stderr, err = s.open(stderr); err != nil {
		s.handedOver()
		s.abandon()
		return nil, err
	}
	return s, nil
}

// same compares like os/exec: writers of a type that cannot be compared are different.
func same(a, b io.Writer) bool {
	defer func() { _ = recover() }()
	return a == b
}

func (s *streams) openInput(r io.Reader) (err error) {
	switch f := r.(type) {
	case nil:
		if s.stdin, err = os.Open(os.DevNull); err != nil {
			return fmt.Errorf("open %s: %w", os.DevNull, err)
		}
	case *os.File:
		s.stdin, s.lent = f, true
	default:
		if s.stdin, s.feed, err = os.Pipe(); err != nil {
			return fmt.Errorf("make a pipe: %w", err)
		}
		s.from = r
	}
	return nil
}

func (s *streams) open(w io.Writer) (*os.File, error) {
	if w == nil {
		f, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
		if err != nil {
			return nil, fmt.Errorf("open %s: %w", os.DevNull, err)
		}
		return f, nil
	}
	pr, pw, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe: %w", err)
	}
	s.outs = append(s.outs, &outlet{r: pr, w: w})
	return pw, nil
}

// handedOver closes the child's ends, which the child has now.
func (s *streams) handedOver() {
	if s.stdin != nil && !s.lent {
		_ = s.stdin.Close()
	}
	if s.stdout != nil {
		_ = s.stdout.Close()
	}
	if s.stderr != nil && s.stderr != s.stdout {
		_ = s.stderr.Close()
	}
}

func (s *streams) abandon() {
	if s.feed != nil {
		_ = s.feed.Close()
	}
	for _, o := range s.outs {
		_ = o.r.Close()
	}
}

func (s *streams) copy() {
	if s.feed != nil {
		go func() { // not waited for: a reader may never end, and nothing of the command hangs on it
			_, _ = io.Copy(s.feed, s.from)
			_ = s.feed.Close()
		}()
	}
	for _, o := range s.outs {
		s.running.Go(o.copy)
	}
}

func (o *outlet) copy() {
	buf := make([]byte, copyBytes)
	for {
		n, err := o.r.Read(buf)
		full := n == copyBytes && len(buf) == copyBytes
		if n > 0 && o.err == nil {
			if _, werr := o.w.Write(buf[:n]); werr != nil {
				o.err = fmt.Errorf("write the output of a command: %w", werr)
			}
		}
		if full {
			widen(o.r, floodBytes)
			buf = make([]byte, floodBytes)
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF), errors.Is(err, os.ErrDeadlineExceeded):
			return
		default:
			if o.err == nil {
				o.err = fmt.Errorf("read the output of a command: %w", err)
			}
			return
		}
	}
}

// finish waits until all that was written is copied. The tree is gone, so a pipe still open is held by a process that is no
// part of it: that one is waited for up to bound.
func (s *streams) finish(bound time.Duration) error {
	deadline := time.Now().Add(bound)
	for _, o := range s.outs {
		_ = o.r.SetReadDeadline(deadline)
	}
	s.running.Wait()
	s.abandon()
	for _, o := range s.outs {
		if o.err != nil {
			return o.err
		}
	}
	return nil
}

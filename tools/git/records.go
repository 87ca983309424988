package git

import (
	"bytes"
	"io"
	"os"
)

// sink remembers the error of a writer.
type sink struct {
	w   io.Writer
	err error
}

func (s *sink) Write(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.w.Write(p)
	s.err = err
	return n, err
}

// direct is the writer itself where git may write into it without this process in between.
func (s *sink) direct() io.Writer {
	if f, ok := s.w.(*os.File); ok {
		return f
	}
	return s
}

// Records is a writer that hands on what is written piece by piece; the byte End ends a piece. A piece that does not end is not handed on.
type Records struct {
	End  byte
	Fn   func(string) error
	Most int   // bytes of a piece that are kept, 0 for all: the rest of a longer one is left out
	Lost int64 // bytes left out of the piece that Fn has

	rest []byte
	err  error
}

func (s *Records) Write(p []byte) (int, error) {
	n := len(p)
	for s.err == nil {
		i := bytes.IndexByte(p, s.End)
		if i < 0 {
			s.keep(p)
			break
		}
		s.keep(p[:i])
		s.err = s.Fn(string(s.rest))
		s.rest, s.Lost, p = s.rest[:0], 0, p[i+1:]
	}
	return n, s.err
}

func (s *Records) keep(p []byte) {
	if room := s.Most - len(s.rest); s.Most > 0 && len(p) > room {
		s.Lost += int64(len(p) - room)
		p = p[:room]
	}
	s.rest = append(s.rest, p...)
}

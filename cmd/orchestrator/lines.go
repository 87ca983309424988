package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
)

const (
	maxLineBytes  = 16 << 20
	maxBatchLines = 64
	maxBatchBytes = 16 << 20
)

// line is a line of input without its newline; tooLong: over maxLineBytes, and dropped.
type line struct {
	text    []byte
	tooLong bool
}

// batch is the lines that had arrived when the first of them was read.
type batch struct {
	lines []line
	err   error // of the reader; the last batch
}

// readLines reads in another goroutine, at most one batch ahead. That goroutine ends with the input; a read that never returns is left to the
// end of the process, since standard input cannot be made to give up.
func readLines(ctx context.Context, in io.Reader) <-chan batch {
	out := make(chan batch)
	go func() {
		defer close(out)
		r := bufio.NewReaderSize(in, 1<<16)
		for {
			b, more := readBatch(r)
			if len(b.lines) > 0 || b.err != nil {
				select {
				case out <- b:
				case <-ctx.Done():
					return
				}
			}
			if !more {
				return
			}
		}
	}()
	return out
}

// readBatch waits for one line and takes those with it that have arrived whole.
func readBatch(r *bufio.Reader) (b batch, more bool) {
	size := 0
	for {
		l, err := readLine(r)
		if len(l.text) > 0 || l.tooLong {
			b.lines = append(b.lines, l)
			size += len(l.text)
		}
		if errors.Is(err, io.EOF) {
			return b, false
		}
		if err != nil {
			b.err = err
			return b, false
		}
		if len(b.lines) >= maxBatchLines || size >= maxBatchBytes || !holdsLine(r) {
			return b, true
		}
	}
}

// holdsLine says whether a whole line is there without waiting.
func holdsLine(r *bufio.Reader) bool {
	waiting, err := r.Peek(r.Buffered())
	return err == nil && bytes.IndexByte(waiting, '\n') >= 0
}

// readLine reads up to a newline or the end of input, and keeps at most maxLineBytes of it.
func readLine(r *bufio.Reader) (line, error) {
	var l line
	for {
		part, err := r.ReadSlice('\n')
		part = bytes.TrimSuffix(part, []byte{'\n'})
		if !l.tooLong {
			l.text = append(l.text, part...)
			if len(l.text) > maxLineBytes {
				l.text, l.tooLong = nil, true
			}
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return l, err
		}
	}
}

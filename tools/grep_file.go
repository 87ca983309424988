package tools

import (
	"bytes"
	"io"

	"muster/tools/workspace"
)

// loader reads whole files of a bounded size into one buffer, and counts what it does not read by reason.
type loader struct {
	limit int // bytes of the largest file
	buf   []byte

	bytes                     int64
	large, binary, unreadable int
}

// firstRead is what a file is judged by before the rest is read; most files are smaller.
const firstRead = 64 << 10

// open reads a file of a walk; what it returns is valid until the next call. The text is UTF-8, or what else the file holds, without a byte order mark.
func (l *loader) open(w workspace.Walked) ([]byte, bool) {
	r, err := w.Open()
	if err != nil {
		l.unreadable++
		return nil, false
	}
	defer r.Close()
	return l.load(r)
}

func (l *loader) load(r workspace.Reading) ([]byte, bool) {
	if r.Size > int64(l.limit) {
		l.large++
		return nil, false
	}
	size := int(r.Size)
	if need := max(size, sniffBytes); need > len(l.buf) {
		l.buf = make([]byte, min(l.limit, max(2*need, 4*firstRead)))
	}
	end := min(size, firstRead)
	if size == 0 {
		end = sniffBytes // some file systems do not know sizes
	}
	n, err := fill(r, l.buf[:end])
	if err != nil {
		l.unreadable++
		return nil, false
	}
	enc, kind := sniff(l.buf[:min(n, sniffBytes)])
	if kind != "" {
		l.binary++
		return nil, false
	}
	if n == end && n < size {
		more, err := fill(r, l.buf[n:size])
		if err != nil {
			l.unreadable++
			return nil, false
		}
		n += more
	}
	l.bytes += int64(n)
	data := l.buf[:n]
	if enc == utf16LE || enc == utf16BE {
		text, _ := enc.decode(data)
		return []byte(text), true
	}
	return data[len(boms[enc]):], true
}

// fill reads until p is full or the file ends.
func fill(r io.Reader, p []byte) (int, error) {
	n := 0
	for n < len(p) {
		m, err := r.Read(p[n:])
		n += m
		if err == io.EOF || m == 0 && err == nil {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// lineAt returns the line of data around position at: where it begins, where its text ends (before \n or \r\n), and where the next one begins.
func lineAt(data []byte, at int) (start, end, next int) {
	start = bytes.LastIndexByte(data[:at], '\n') + 1
	end, next = lineFrom(data, start)
	return start, end, next
}

// lineFrom is lineAt for a position where a line begins.
func lineFrom(data []byte, start int) (end, next int) {
	i := bytes.IndexByte(data[start:], '\n')
	if i < 0 {
		return len(data), len(data)
	}
	end = start + i
	next = end + 1
	if end > start && data[end-1] == '\r' {
		end--
	}
	return end, next
}

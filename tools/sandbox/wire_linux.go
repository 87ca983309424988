package sandbox

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"syscall"
	"time"
)

// The conversation of worker and init over their socket: one spec down, then up either one failure, or one start and, at the end,
// one finish. Numbers are little-endian; strings, which may hold any byte, carry their length.

// spec is what an init runs.
type spec struct {
	rung      rung
	dir, path string
	args, env []string
}

// specBytes bounds what an init accepts: more than the kernel takes as arguments and environment together.
const specBytes = 64 << 20

func (s spec) encode() []byte {
	b := make([]byte, 4, 4096)
	b = putString(b, string(s.rung))
	b = putString(b, s.dir)
	b = putString(b, s.path)
	b = putStrings(b, s.args)
	b = putStrings(b, s.env)
	binary.LittleEndian.PutUint32(b, uint32(len(b)-4))
	return b
}

func putString(b []byte, s string) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(s)))
	return append(b, s...)
}

func putStrings(b []byte, ss []string) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(ss)))
	for _, s := range ss {
		b = putString(b, s)
	}
	return b
}

var errSpec = errors.New("malformed spec")

func readSpec(r io.Reader) (spec, error) {
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return spec{}, err
	}
	n := binary.LittleEndian.Uint32(size[:])
	if n > specBytes {
		return spec{}, errSpec
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(r, b); err != nil {
		return spec{}, err
	}
	d := decoder{b: b}
	s := spec{rung: rung(d.string()), dir: d.string(), path: d.string(), args: d.strings(), env: d.strings()}
	if d.bad || len(d.b) != 0 {
		return spec{}, errSpec
	}
	return s, nil
}

type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) number() int {
	if len(d.b) < 4 {
		d.bad, d.b = true, nil
		return 0
	}
	n := binary.LittleEndian.Uint32(d.b)
	d.b = d.b[4:]
	return int(n)
}

func (d *decoder) string() string {
	n := d.number()
	if n > len(d.b) {
		d.bad, d.b = true, nil
		return ""
	}
	s := string(d.b[:n])
	d.b = d.b[n:]
	return s
}

func (d *decoder) strings() []string {
	n := d.number()
	if n > len(d.b)/4 {
		d.bad, d.b = true, nil
		return nil
	}
	ss := make([]string, 0, n)
	for range n {
		ss = append(ss, d.string())
	}
	return ss
}

// message is what an init says, in a frame of fixed size but for the text.
type message struct {
	kind      uint32 // one of the kinds below
	errno     uint32 // failed
	status    uint32 // finished: as wait(2) gives it
	killed    uint32 // finished: the socket had ended before the command did
	left      uint32
	survivors uint32
	nanos     uint64 // finished: the command's duration
	pid       uint32 // started: the command's process number as the init sees it
	textLen   uint32
}

const (
	failed   = 1 // set-up or execution failed; text says at what
	started  = 2
	finished = 3
)

const messageBytes = 4*8 + 8

func (m message) encode(text string) []byte {
	m.textLen = uint32(len(text))
	b := make([]byte, 0, messageBytes+len(text))
	for _, v := range []uint32{m.kind, m.errno, m.status, m.killed, m.left, m.survivors, m.pid, m.textLen} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	b = binary.LittleEndian.AppendUint64(b, m.nanos)
	return append(b, text...)
}

func readMessage(r io.Reader) (message, string, error) {
	var b [messageBytes]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return message{}, "", err
	}
	var m message
	for i, v := range []*uint32{&m.kind, &m.errno, &m.status, &m.killed, &m.left, &m.survivors, &m.pid, &m.textLen} {
		*v = binary.LittleEndian.Uint32(b[4*i:])
	}
	m.nanos = binary.LittleEndian.Uint64(b[4*8:])
	if m.textLen > 4096 {
		return message{}, "", fmt.Errorf("message of %d bytes", m.textLen)
	}
	text := make([]byte, m.textLen)
	if _, err := io.ReadFull(r, text); err != nil {
		return message{}, "", err
	}
	return m, string(text), nil
}

func (m message) exit(r rung) Exit {
	e := exitOf(syscall.WaitStatus(m.status))
	e.Killed = m.killed != 0 && e.Signal == "SIGKILL"
	e.Left, e.Survivors = int(m.left), int(m.survivors)
	e.Method, e.Duration = string(r), time.Duration(m.nanos)
	return e
}

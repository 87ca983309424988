package sandbox

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// What worker, launcher, holder, init and stage say to each other: frames over socket pairs, each with a length and, where it says so,
// descriptors. Numbers are little-endian; strings, which may hold any byte, carry their length.

// frameBytes bounds a frame: more than the kernel takes as arguments and environment together.
const frameBytes = 64 << 20

// frameFDs is the most descriptors that a frame carries.
const frameFDs = 3

var errFrame = errors.New("malformed frame")

// endpoint is an end of a pair: of the worker, with deadlines, or of one of its helpers, which block.
type endpoint interface {
	recv(p, oob []byte) (n, oobn int, err error)
	send(p, oob []byte) (n int, err error)
}

// sendFrame writes one frame. The descriptors are duplicated on the way: the caller's stay open.
func sendFrame(s endpoint, body []byte, fds ...int) error {
	b := binary.LittleEndian.AppendUint32(make([]byte, 0, 4+len(body)), uint32(len(body)))
	b = append(b, body...)
	var oob []byte
	if len(fds) > 0 {
		oob = unix.UnixRights(fds...)
	}
	for len(b) > 0 {
		n, err := s.send(b, oob)
		if err != nil {
			return err
		}
		b, oob = b[n:], nil
	}
	return nil
}

// readFrame reads one frame. The descriptors are the caller's to close, also with an error; they are close-on-exec.
func readFrame(s endpoint) (body []byte, fds []int, err error) {
	var head [4]byte
	oob := make([]byte, unix.CmsgSpace(4*frameFDs))
	for got := 0; got < len(head); {
		n, oobn, err := s.recv(head[got:], oob)
		if oobn > 0 {
			fds = append(fds, rights(oob[:oobn])...)
		}
		switch {
		case err != nil:
			return nil, fds, err
		case n == 0:
			return nil, fds, errEnded
		}
		got += n
	}
	size := binary.LittleEndian.Uint32(head[:])
	if size > frameBytes {
		return nil, fds, errFrame
	}
	body = make([]byte, size)
	for got := 0; got < len(body); {
		n, _, err := s.recv(body[got:], nil)
		switch {
		case err != nil:
			return nil, fds, err
		case n == 0:
			return nil, fds, errEnded
		}
		got += n
	}
	return body, fds, nil
}

var errEnded = errors.New("the other side has ended")

func rights(oob []byte) (fds []int) {
	msgs, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil
	}
	for i := range msgs {
		if got, err := unix.ParseUnixRights(&msgs[i]); err == nil {
			fds = append(fds, got...)
		}
	}
	return fds
}

func closeAll(fds []int) {
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
}

// fdSocket is a blocking descriptor without the runtime's poller.
type fdSocket int

func (s fdSocket) recv(p, oob []byte) (n, oobn int, err error) {
	for {
		n, oobn, _, _, err = unix.Recvmsg(int(s), p, oob, unix.MSG_CMSG_CLOEXEC)
		if !errors.Is(err, unix.EINTR) {
			return n, oobn, err
		}
	}
}

func (s fdSocket) send(p, oob []byte) (int, error) {
	for {
		n, err := unix.SendmsgN(int(s), p, oob, nil, unix.MSG_NOSIGNAL)
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

// connSocket is the worker's end.
type connSocket struct{ *net.UnixConn }

func (s connSocket) recv(p, oob []byte) (n, oobn int, err error) {
	n, oobn, _, _, err = s.ReadMsgUnix(p, oob)
	return n, oobn, err
}

func (s connSocket) send(p, oob []byte) (int, error) {
	n, _, err := s.WriteMsgUnix(p, oob, nil)
	return n, err
}

// newConn takes fd, which is closed with the connection, or now with an error.
func newConn(fd int) (connSocket, error) {
	f := os.NewFile(uintptr(fd), "sandbox")
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return connSocket{}, err
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		_ = c.Close()
		return connSocket{}, errFrame
	}
	return connSocket{u}, nil
}

// within gives a conversation its time; the result takes the limit away.
func (s connSocket) within(d time.Duration) (over func()) {
	_ = s.SetDeadline(time.Now().Add(d))
	return func() { _ = s.SetDeadline(time.Time{}) }
}

// codec writes values behind each other into b, or takes them from its front.
type codec struct {
	b       []byte
	reading bool
	bad     bool
}

// wired is what travels: fields names its fields in order, for both directions.
type wired interface{ fields(c *codec) }

func encode(v wired) []byte {
	c := codec{b: make([]byte, 0, 4096)}
	v.fields(&c)
	return c.b
}

func decode(b []byte, v wired) error {
	c := codec{b: b, reading: true}
	if v.fields(&c); c.bad || len(c.b) != 0 {
		return errFrame
	}
	return nil
}

func number[N ~int | ~int64 | ~uint32 | ~uint64](c *codec, p *N) {
	if !c.reading {
		c.b = binary.LittleEndian.AppendUint64(c.b, uint64(*p))
		return
	}
	if len(c.b) < 8 {
		c.bad, c.b = true, nil
		return
	}
	*p = N(binary.LittleEndian.Uint64(c.b))
	c.b = c.b[8:]
}

func text[S ~string](c *codec, p *S) {
	n := len(*p)
	number(c, &n)
	if !c.reading {
		c.b = append(c.b, *p...)
		return
	}
	if n < 0 || n > len(c.b) {
		c.bad, c.b = true, nil
		return
	}
	*p = S(c.b[:n])
	c.b = c.b[n:]
}

func texts(c *codec, p *[]string) {
	n := len(*p)
	number(c, &n)
	if c.reading {
		if n < 0 || n > len(c.b)/8 {
			c.bad, c.b = true, nil
			return
		}
		*p = make([]string, n)
	}
	for i := range *p {
		text(c, &(*p)[i])
	}
}

func flag(c *codec, p *bool) {
	n := 0
	if *p {
		n = 1
	}
	number(c, &n)
	*p = n != 0
}

// kind says what a message is about.
type kind uint32

const (
	failed   kind = iota + 1 // a step failed; text says which
	ready                    // a holder, with its pidfd, or an init, with its pidfd
	given                    // what was asked for, in the descriptor
	take                     // an init is asked for
	started                  // the command runs
	finished                 // the command has ended, or the box has
)

// message is what launcher, holder and init answer.
type message struct {
	kind      kind
	errno     uint32 // failed
	text      string // failed: at what; finished: the limit that ended it
	status    uint32 // finished: as wait(2) gives it
	killed    bool   // finished: asked to end before the command did, or over a limit
	left      int
	survivors int
	nanos     int64 // finished: the command's duration
	pid       int   // started: the command's process number as its init sees it
}

func (m *message) fields(c *codec) {
	number(c, &m.kind)
	number(c, &m.errno)
	text(c, &m.text)
	number(c, &m.status)
	flag(c, &m.killed)
	number(c, &m.left)
	number(c, &m.survivors)
	number(c, &m.nanos)
	number(c, &m.pid)
}

func tell(s endpoint, m message, fds ...int) error { return sendFrame(s, encode(&m), fds...) }

// hear reads a message of the kind that is due. What failed on the other side is an error with its errno.
func expect(s endpoint, due kind) (message, []int, error) {
	body, fds, err := readFrame(s)
	var m message
	if err == nil {
		err = decode(body, &m)
	}
	switch {
	case err != nil:
	case m.kind == failed && m.errno == 0:
		err = errors.New(m.text)
	case m.kind == failed:
		err = stepError{m.text, unix.Errno(m.errno)}
	case m.kind != due:
		err = fmt.Errorf("message %d where %d was due: %w", m.kind, due, errFrame)
	}
	if err != nil {
		closeAll(fds)
		return m, nil, err
	}
	return m, fds, nil
}

// stepError is a step of a set-up that failed.
type stepError struct {
	step string
	err  error
}

func (e stepError) Error() string { return e.step + ": " + e.err.Error() }
func (e stepError) Unwrap() error { return e.err }

// at names the step of err, if any.
func at(step string, err error) error {
	if err == nil {
		return nil
	}
	return stepError{step, err}
}

// failure is the message of an error.
func failure(err error) message {
	var step stepError
	var no unix.Errno
	if errors.As(err, &step) && errors.As(err, &no) {
		return message{kind: failed, errno: uint32(no), text: clipText(step.step)}
	}
	return message{kind: failed, text: clipText(err.Error())}
}

func clipText(s string) string {
	const most = 1000
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}

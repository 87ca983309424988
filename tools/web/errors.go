package web

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"time"

	"muster/tools/egress"
)

// Kind says what can be done about a failure.
type Kind int

const (
	Wrong   Kind = iota // what was asked for is no URL or query that could be sent: correct it
	Refused             // not allowed, by the guard, by a rule, by robots.txt or by the server
	Later               // it may work another time
	Lost                // it will not work, however often
)

// Error is a failure and its kind. Its text is one line of ASCII.
type Error struct {
	Kind    Kind
	Text    string
	Foreign bool          // Text repeats what a server said
	After   time.Duration // of Later: what the server asks to wait; 0: it did not say
	Body    string        // the first part of the page that came with it, as text; foreign
}

func (e *Error) Error() string { return e.Text }

func failure(kind Kind, format string, a ...any) *Error {
	return &Error{Kind: kind, Text: fmt.Sprintf(format, a...)}
}

// foreign is a failure whose text repeats what a server said.
func foreign(kind Kind, format string, a ...any) *Error {
	e := failure(kind, format, a...)
	e.Foreign = true
	return e
}

// Causes of an end that is not the caller's.
var (
	errSlow = errors.New("it took longer than the time there is")
	errIdle = errors.New("nothing came any more")
)

// refusal is an error of the guard's as one of ours.
func refusal(err error) *Error {
	if errors.Is(err, egress.ErrRefused) && !errors.Is(err, egress.ErrMisspelt) {
		return failure(Refused, "%v", err)
	}
	return failure(Wrong, "%v", err)
}

// unreached explains why there is no answer of a host. cause is that of the context, nil while it lasts.
func unreached(host string, err, cause error) error {
	var (
		lookup  *net.DNSError
		timeout interface{ Timeout() bool }
		number  syscall.Errno
	)
	switch {
	case errors.Is(err, egress.ErrRefused):
		return failure(Refused, "%s: %s", host, innermost(err, egress.ErrRefused))
	case errors.Is(cause, errSlow), errors.Is(cause, errIdle):
		return failure(Later, "no answer of %s: %v", host, cause)
	case cause != nil:
		return cause // the caller's own
	case errors.As(err, &lookup) && lookup.IsNotFound:
		return failure(Lost, "there is no host %s", host)
	case errors.As(err, &lookup):
		return failure(Later, "the address of %s could not be found", host)
	}
	if why := distrust(err); why != "" {
		return failure(Lost, "the TLS connection to %s is not trusted: %s", host, why)
	}
	switch {
	case errors.As(err, &timeout) && timeout.Timeout():
		return failure(Later, "no answer of %s in time", host)
	case errors.As(err, &number):
		return failure(Later, "no connection to %s: %v", host, number)
	case strings.Contains(err.Error(), "server response headers exceeded"):
		return failure(Lost, "the header of the answer of %s is over %d bytes, the most that is read", host, headerBytes)
	}
	return foreign(Later, "no answer of %s that can be understood: %s", host, oneLine(err.Error()))
}

// distrust says what is wrong with a TLS connection, "" where it is not TLS that failed.
func distrust(err error) string {
	var (
		name      x509.HostnameError
		authority x509.UnknownAuthorityError
		invalid   x509.CertificateInvalidError
		alert     tls.AlertError
		record    tls.RecordHeaderError
		verify    *tls.CertificateVerificationError
	)
	switch {
	case errors.As(err, &name):
		return "its certificate is for another host"
	case errors.As(err, &authority):
		return "nobody who is trusted here vouches for its certificate"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "its certificate is not valid today"
	case errors.As(err, &invalid), errors.As(err, &verify):
		return "its certificate is not valid"
	case errors.As(err, &record):
		return "it does not speak TLS there; is it http:// ?"
	case errors.As(err, &alert):
		return "it broke the handshake off (" + oneLine(alert.Error()) + ")"
	}
	return ""
}

// innermost is the text of the deepest error of a chain that is still one of target.
func innermost(err, target error) string {
	for {
		next := errors.Unwrap(err)
		if next == nil || !errors.Is(next, target) {
			return oneLine(err.Error())
		}
		err = next
	}
}

// ended is the cause of the context's end, nil before.
func ended(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return context.Cause(ctx)
}

const lineChars = 300

// oneLine bounds what an error repeats.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
	return s[:min(len(s), lineChars)]
}

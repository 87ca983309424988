//go:build linux

package sandbox

import (
	"errors"
	"net"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// netAttacks want to talk to the worker, or to others on the machine.
func netAttacks() []attack {
	return []attack{
		{name: "tcp", do: func(v victim) finding { return greet("tcp", "127.0.0.1:"+itoa(v.TCP)) }},
		{name: "tcp6", do: func(v victim) finding {
			if v.TCP6 == 0 {
				return lacking("the worker has no ::1")
			}
			return greet("tcp", "[::1]:"+itoa(v.TCP6))
		}},
		{name: "mptcp", do: mptcp},
		{name: "udp", do: func(v victim) finding { return greet("udp", "127.0.0.1:"+itoa(v.UDP)) }},
		{name: "udp6", do: func(v victim) finding {
			if v.UDP6 == 0 {
				return lacking("the worker has no ::1")
			}
			return greet("udp", "[::1]:"+itoa(v.UDP6))
		}},
		{name: "unix_path", do: func(v victim) finding { return greet("unix", v.Sock) }},
		{name: "unix_open", do: func(v victim) finding { return greet("unix", v.OpenSock) }},
		{name: "unix_abstract", do: func(v victim) finding { return greet("unix", "@"+v.Abstract) }},
		{name: "bind_host", do: bindHost},
		{name: "interfaces", do: func(victim) finding {
			all, err := net.Interfaces()
			if err != nil {
				return stopped("%v", err)
			}
			for _, i := range all {
				if i.Flags&net.FlagLoopback == 0 && i.Flags&net.FlagUp != 0 {
					return works("%s is up", i.Name)
				}
			}
			return stopped("loopback at most")
		}},
		{name: "vsock", do: func(victim) finding { return socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0) }},
		{name: "packet", needs: as(unix.CAP_NET_RAW), do: func(victim) finding { return socket(unix.AF_PACKET, unix.SOCK_RAW, 0) }},
		{name: "raw", needs: as(unix.CAP_NET_RAW), do: func(victim) finding { return socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP) }},
		{name: "alg", do: func(victim) finding { return socket(unix.AF_ALG, unix.SOCK_SEQPACKET, 0) }},
		{name: "mptcp_socket", do: func(victim) finding { return socket(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP) }},
		{name: "odd_families", needs: as(unix.CAP_NET_ADMIN), do: func(victim) finding {
			last := lacking("this kernel has none")
			for _, family := range []int{unix.AF_KEY, unix.AF_X25, unix.AF_RDS, unix.AF_CAN, unix.AF_TIPC, unix.AF_BLUETOOTH, unix.AF_NFC, unix.AF_KCM, unix.AF_QIPCRTR, unix.AF_SMC, unix.AF_XDP} {
				for _, kind := range []int{unix.SOCK_STREAM, unix.SOCK_DGRAM, unix.SOCK_RAW, unix.SOCK_SEQPACKET} {
					v := socket(family, kind, 0)
					if v.Outcome == worked {
						return works("a socket of family %d", family)
					}
					if v.Outcome == blocked {
						last = v
					}
				}
			}
			return last
		}},
		{name: "tiocsti", alone: true, do: typeForWorker},
	}
}

// greet says hello and waits for the worker's answer.
func greet(network, address string) finding {
	c, err := net.DialTimeout(network, address, 2*time.Second)
	if err != nil {
		return unless(err, "connect to "+address)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(2 * time.Second))
	if _, err := c.Write([]byte("hello\n")); err != nil {
		return stopped("greet: %v", err)
	}
	b := make([]byte, 100)
	n, err := c.Read(b)
	return secretIn(b[:max(n, 0)], err, "hear an answer from "+address)
}

// mptcp is TCP by another name, which rules about TCP do not see.
func mptcp(v victim) finding {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP)
	if err != nil {
		return unless(err, "a socket of MPTCP")
	}
	err = unix.Connect(fd, &unix.SockaddrInet4{Port: v.TCP, Addr: [4]byte{127, 0, 0, 1}})
	return unless(err, "connect by MPTCP")
}

func socket(family, kind, protocol int) finding {
	fd, err := unix.Socket(family, kind, protocol)
	if err == nil {
		_ = unix.Close(fd)
	}
	return unless(err, "make a socket")
}

// bindHost tells the host's loopback from one of its own: on the host's the worker's port is taken.
func bindHost(v victim) finding {
	own, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return unless(err, "listen on loopback")
	}
	defer own.Close()
	taken, err := net.Listen("tcp", "127.0.0.1:"+itoa(v.TCP))
	if err == nil {
		_ = taken.Close()
		return stopped("listens on a loopback of its own")
	}
	return permitted(err, "listen on the host's loopback", unix.EADDRINUSE)
}

// typeForWorker types a key on the terminal of the worker, which nobody reads.
func typeForWorker(v victim) finding {
	if v.TTY == "" {
		return lacking("the worker has no terminal")
	}
	last := stopped("no terminal is open here")
	for _, name := range []string{"/dev/tty", v.TTY, "/proc/self/fd/0", "/proc/self/fd/1", "/proc/self/fd/2"} {
		fd, err := unix.Open(name, unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
		if err != nil {
			continue
		}
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSTI, 'x')
		_ = unix.Close(fd)
		if err == nil {
			return works("typed on %s", name)
		}
		if errors.Is(err, unix.EIO) { // and not ENOTTY
			return lacking("the kernel lets nobody type on %s: %v", name, err)
		}
		last = stopped("type on %s: %v", name, err)
	}
	return last
}

// otherAttacks are on a command of another agent, in a box of its own.
func otherAttacks() []attack {
	return []attack{
		{name: "other_read", do: func(v victim) finding { return readSecret(v.Other.Dir + "/secret") }},
		{name: "other_write", do: func(v victim) finding { return plant(v.Other.Dir + "/planted") }},
		{name: "other_environ", maybe: "it is shut to the same user, as a worker is", do: func(v victim) finding { return v.Other.attack(environOf) }},
		{name: "other_root", maybe: "it is shut to the same user, as a worker is", do: func(v victim) finding {
			return v.Other.attack(func(pid int) finding { return readSecret("/proc/" + itoa(pid) + "/root" + v.Other.Dir + "/secret") })
		}},
		{name: "other_kill", do: func(v victim) finding {
			return v.Other.attack(func(pid int) finding { return unless(unix.Kill(pid, unix.SIGWINCH), "kill") })
		}},
		{name: "other_tcp", do: func(v victim) finding {
			if v.Other.Port == 0 {
				return stopped("the other agent may not listen")
			}
			return greet("tcp", "127.0.0.1:"+itoa(v.Other.Port))
		}},
		{name: "other_abstract", do: func(v victim) finding {
			if v.Other.Abstract == "" {
				return stopped("the other agent may not listen")
			}
			return greet("unix", "@"+v.Other.Abstract)
		}},
		{name: "other_tmp", do: func(v victim) finding { return readSecret("/tmp/" + otherTmp(v.Other)) }},
	}
}

// otherTmp is the file that the other agent leaves in its /tmp.
func otherTmp(o other) string { return strings.ReplaceAll("muster-other"+o.Dir, "/", "-") }

// attack runs do on the process of the other agent, where the host could find it.
func (o other) attack(do func(pid int) finding) finding {
	if o.PID == 0 {
		return lacking("the worker did not find the process of its other command")
	}
	return do(o.PID)
}

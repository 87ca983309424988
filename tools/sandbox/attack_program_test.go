//go:build linux

package sandbox

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Some attacks need a program without threads, without a runtime, or of another architecture: a few system calls in machine code.

// calling is how a program makes its system calls.
type calling int

const (
	native calling = iota
	int80          // a 64-bit program by the door for 32-bit ones
	ia32           // a 32-bit program
)

// sysCall is one call of a program. An argument is a number of 32 bits, or result.
type sysCall struct {
	number int
	args   []int64
}

// result stands, as the first argument, for what the call before returned.
const result = math.MinInt64

// base is where a program is loaded.
const base = 0x400000

// program makes an ELF file that makes the calls in order and ends with the number of the first error, or 0.
func program(how calling, calls []sysCall) []byte {
	var code []byte
	var exits []int // where a jump to the end of the code is to be filled in
	for _, c := range calls {
		code = append(code, load(how, c)...)
		code = append(code, 0x85, 0xc0)             // test eax, eax
		code = append(code, 0x0f, 0x88, 0, 0, 0, 0) // js the end
		exits = append(exits, len(code))
	}
	code = append(code, 0x31, 0xc0) // xor eax, eax
	for _, at := range exits {
		binary.LittleEndian.PutUint32(code[at-4:], uint32(len(code)-at))
	}
	code = append(code, 0xf7, 0xd8) // neg eax
	if how == ia32 {
		code = append(code, 0x89, 0xc3, 0xb8, 252, 0, 0, 0, 0xcd, 0x80) // exit_group(eax)
	} else {
		code = append(code, 0x89, 0xc7, 0xb8, 231, 0, 0, 0, 0x0f, 0x05)
	}
	return link(how, code)
}

// load is the code of one call. Moves of 32 bits clear the upper half of a register.
func load(how calling, c sysCall) (code []byte) {
	moves := [][]byte{{0xbf}, {0xbe}, {0xba}, {0x41, 0xba}, {0x41, 0xb8}, {0x41, 0xb9}} // edi esi edx r10d r8d r9d
	if how != native {
		moves = [][]byte{{0xbb}, {0xb9}, {0xba}, {0xbe}, {0xbf}} // ebx ecx edx esi edi
	}
	for i, a := range c.args {
		if a == result {
			code = append(code, 0x48, 0x89, 0xc7) // mov rdi, rax
			continue
		}
		code = binary.LittleEndian.AppendUint32(append(code, moves[i]...), uint32(a))
	}
	code = binary.LittleEndian.AppendUint32(append(code, 0xb8), uint32(c.number)) // mov eax, number
	if how == native {
		return append(code, 0x0f, 0x05) // syscall
	}
	return append(code, 0xcd, 0x80) // int 0x80
}

// link puts an ELF header and one segment around code.
func link(how calling, code []byte) []byte {
	ident := [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)}
	var b bytes.Buffer
	if how == ia32 {
		ident[elf.EI_CLASS] = byte(elf.ELFCLASS32)
		const head = 52 + 32
		size := uint32(head + len(code))
		_ = binary.Write(&b, binary.LittleEndian, elf.Header32{Ident: ident, Type: uint16(elf.ET_EXEC), Machine: uint16(elf.EM_386), Version: 1,
			Entry: base + head, Phoff: 52, Ehsize: 52, Phentsize: 32, Phnum: 1})
		_ = binary.Write(&b, binary.LittleEndian, elf.Prog32{Type: uint32(elf.PT_LOAD), Vaddr: base, Paddr: base, Filesz: size, Memsz: size,
			Flags: uint32(elf.PF_R | elf.PF_X), Align: 0x1000})
	} else {
		const head = 64 + 56
		size := uint64(head + len(code))
		_ = binary.Write(&b, binary.LittleEndian, elf.Header64{Ident: ident, Type: uint16(elf.ET_EXEC), Machine: uint16(elf.EM_X86_64), Version: 1,
			Entry: base + head, Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: 1})
		_ = binary.Write(&b, binary.LittleEndian, elf.Prog64{Type: uint32(elf.PT_LOAD), Vaddr: base, Paddr: base, Filesz: size, Memsz: size,
			Flags: uint32(elf.PF_R | elf.PF_X), Align: 0x1000})
	}
	b.Write(code)
	return b.Bytes()
}

// runProgram runs a program from the workspace, as a build does, and tells how it ended.
func runProgram(v victim, text []byte) finding {
	if runtime.GOARCH != "amd64" {
		return lacking("a program in the machine code of amd64")
	}
	name := v.Workspace + "/program"
	defer os.Remove(name)
	if err := os.WriteFile(name, text, 0o700); err != nil {
		return lacking("write a program: %v", err)
	}
	err := exec.Command(name).Run()
	var ee *exec.ExitError
	if !errors.As(err, &ee) {
		return unless(err, "run a program of the workspace")
	}
	ws, ok := ee.Sys().(syscall.WaitStatus)
	switch {
	case ok && ws.Signaled() && ws.Signal() == unix.SIGSYS:
		return stopped("killed by the system call filter")
	case ok && ws.Exited():
		return stopped("%v", syscall.Errno(ws.ExitStatus()))
	}
	return stopped("%v", err)
}

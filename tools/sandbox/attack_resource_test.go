//go:build linux

package sandbox

import (
	"os"
	"os/signal"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

const mib = 1 << 20

// resourceAttacks take more than they may. Those that can only be seen from outside hold on to what they have for a while.
func resourceAttacks() []attack {
	return append(memoryAttacks(), []attack{
		{name: "fork_bomb", limits: Limits{Processes: 64},
			script: `i=0; while [ $i -lt 200 ]; do sleep 30 & i=$((i+1)); done; echo worked`},
		{name: "threads", limits: Limits{Processes: 64}, alone: true, mayDie: true, do: func(victim) finding {
			started, done := make(chan bool), make(chan struct{})
			for range 200 {
				go func() {
					runtime.LockOSThread()
					started <- true
					<-done
				}()
			}
			for range 200 {
				<-started
			}
			close(done)
			return works("200 threads")
		}},
		{name: "big_file", limits: Limits{FileBytes: 16 * mib}, script: `head -c 33554432 /dev/zero >"$WS/big" && echo worked; rm -f "$WS/big"`},
		{name: "many_files", limits: Limits{DiskBytes: 64 * mib},
			script: `cd "$WS"; ` + someFiles},
		{name: "tiny_files", limits: Limits{DiskFiles: 2000},
			script: `mkdir "$WS/tiny"; cd "$WS/tiny"; i=0; while [ $i -lt 4000 ]; do : >"f$i" || exit; i=$((i+1)); done; sleep $HOLD; echo worked`},
		{name: "tmp_fill", limits: Limits{TmpBytes: 16 * mib}, script: `head -c 33554432 /dev/zero >"$TMP/fill" && echo worked; rm -f "$TMP/fill"`},
		{name: "open_files", limits: Limits{OpenFiles: 128}, alone: true, mayDie: true, do: func(victim) finding {
			for i := range 300 {
				if _, err := unix.Open("/dev/null", unix.O_RDONLY, 0); err != nil {
					return stopped("after %d: %v", i, err)
				}
			}
			return works("300 open files")
		}},
		{name: "many_folders", limits: Limits{DiskBytes: 64 * mib}, // more than are looked into at once
			script: `mkdir "$WS/folders"; cd "$WS/folders"; seq 4000 | xargs mkdir; head -c 32768 /dev/zero >../piece
				i=1; while [ $i -le 4000 ]; do tee $(seq -f %g/f $i $((i+499))) <../piece >/dev/null || exit; i=$((i+500)); done; sleep $HOLD; echo worked`},
		{name: "deep_folders", maybe: onFUSE(), limits: Limits{DiskBytes: 64 * mib}, // below what any path can name
			script: `d=$(printf %0250d 0); i=0; while [ $i -lt 20 ]; do mkdir $d && cd -P $d || exit; i=$((i+1)); done; ` + someFiles},
		{name: "shut_folder", limits: Limits{DiskBytes: 64 * mib}, // to all who know no name in it, and with more than the others free meanwhile
			script: `mkdir "$WS/shut"; cd "$WS/shut"; chmod 300 .; for i in 1 2 3 4 5 6 7 8; do head -c 67108864 /dev/zero >much$i || exit; done; ` + someFiles},
		{name: "ghost_files", limits: Limits{DiskBytes: 64 * mib}, script: programScript, program: ghosts(), // only a mapping holds them
			maybe: "a descriptor that the test's own parent left open may be in the way of the program"},
		{name: "spin", limits: Limits{CPUSecs: 1}, alone: true, mayDie: true, do: func(victim) finding { return spin(5 * time.Second) }}, // Go minds no SIGXCPU: it is the harder limit that ends it,
		{name: "spin_stubborn", limits: Limits{CPUSecs: 1}, alone: true, mayDie: true, do: func(victim) finding {
			signal.Ignore(unix.SIGXCPU)
			return spin(5 * time.Second)
		}},
	}...)
}

// someFiles fills 128 MiB of the disk in the folder that it is in, and waits for what comes of it.
const someFiles = `for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do head -c 8388608 /dev/zero >many$i || exit; done; sleep $HOLD; echo worked`

// spin burns processor time.
func spin(bound time.Duration) finding {
	for {
		var used unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil || time.Duration(used.Utime.Nano()+used.Stime.Nano()) > bound {
			return works("%v of a processor", bound)
		}
	}
}

// memoryAttacks fill memory that belongs to a process, to a file system, or to nobody.
func memoryAttacks() []attack {
	some := Limits{MemoryBytes: 128 * mib, TmpBytes: 32 * mib}
	return []attack{
		{name: "mem_hog", limits: some, script: `(head -c 256000000 /dev/zero; sleep 1) | tail -c 256000000 >/dev/null && echo worked`},
		{name: "mem_hog_procs", limits: some, script: `all=; for i in 1 2 3 4 5 6 7 8; do (head -c 48000000 /dev/zero; sleep 1) | tail -c 48000000 >/dev/null & all="$all $!"; done
			for p in $all; do wait $p || exit; done; echo worked`},
		{name: "mem_hog_shm", limits: some, maybe: smallShm(), script: `head -c 256000000 /dev/zero >"$SHM/hog" && sleep 1 && echo worked; rm -f "$SHM/hog"`},
		{name: "mem_hog_memfds", limits: some, script: programScript, program: memfds()},
		{name: "mem_hog_sysv", limits: some, script: programScript, program: sysvSegments()},
	}
}

// smallShm says why /dev/shm cannot be filled by an attack, "" where it can.
func smallShm() string {
	var st unix.Statfs_t
	if err := unix.Statfs("/dev/shm", &st); err != nil {
		return "there is no /dev/shm"
	}
	if all := int64(st.Blocks) * st.Bsize; all < 256*mib {
		return "all of /dev/shm is " + size(all) + ", as containers have it"
	}
	return ""
}

// onFUSE says why the file system under the workspaces does less than others, "" where it does all.
func onFUSE() string {
	const magic = 0x65735546 // FUSE_SUPER_MAGIC
	var st unix.Statfs_t
	if err := unix.Statfs(os.TempDir(), &st); err != nil || st.Type != magic {
		return ""
	}
	return "FUSE takes no path of more than 4,096 bytes, and makes no set-uid file at once"
}

// programScript runs the attack's program.
const programScript = `"$WS/program" && echo worked`

// Numbers that the programs below share. The name of a memfd is the letters of the ELF header.
const (
	piece    = 16 * mib
	pieces   = 16
	segments = 0x10000000 // where a segment is attached
)

// memfds fills files in memory that no process maps and no folder names, and holds them for a second.
func memfds() []byte {
	var calls []sysCall
	for range pieces {
		calls = append(calls,
			sysCall{memfdCreate, []int64{base + 1, 0}},
			sysCall{fallocate, []int64{result, 0, 0, piece}})
	}
	return program(native, append(calls, hold))
}

// ghosts fills files of the workspace, which is its folder, that have no name and no descriptor any more, and holds them for a second.
func ghosts() []byte {
	var calls []sysCall
	const at, shared, writable = 0x20000000, 1, 2
	for i := range int64(pieces) {
		calls = append(calls,
			sysCall{open, []int64{base + 1, unix.O_CREAT | unix.O_RDWR, 0o600}}, // is descriptor 3
			sysCall{fallocate, []int64{3, 0, 0, piece}},
			sysCall{mmap, []int64{at + i*piece, piece, unix.PROT_READ | writable, shared | unix.MAP_FIXED, 3, 0}},
			sysCall{unlink, []int64{base + 1}},
			sysCall{closeFD, []int64{3}})
	}
	return program(native, append(calls, hold))
}

// segmentKey is the key of the i-th segment of a worker.
func segmentKey(i int) int { return 0x6d000000 | os.Getpid()&0xfffff<<4 | i }

// sysvSegments fills shared memory and detaches it, so that it is nobody's.
func sysvSegments() []byte {
	var calls []sysCall
	for i := range pieces {
		calls = append(calls,
			sysCall{shmget, []int64{int64(segmentKey(i)), piece, unix.IPC_CREAT | 0o600}},
			sysCall{shmat, []int64{result, segments, 0}},
			sysCall{madvise, []int64{segments, piece, unix.MADV_POPULATE_WRITE}},
			sysCall{shmdt, []int64{segments}})
	}
	return program(native, append(calls, hold))
}

// removeSegments frees what the program left, where it was the host's.
func removeSegments() {
	for i := range pieces {
		if id, err := unix.SysvShmGet(segmentKey(i), 0, 0); err == nil {
			_, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil)
		}
	}
}

// hold waits for a second: poll(nothing).
var hold = sysCall{poll, []int64{0, 0, 1000}}

// Call numbers of amd64.
const (
	open        = 2
	closeFD     = 3
	poll        = 7
	mmap        = 9
	shmget      = 29
	shmat       = 30
	shmdt       = 67
	madvise     = 28
	unlink      = 87
	fallocate   = 285
	memfdCreate = 319
)

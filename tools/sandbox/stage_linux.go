package sandbox

import (
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// runStage confines itself and becomes the command. It waits for it in the ready, so that a command costs little more than its exec.
func runStage() int {
	sock := become()
	var box boxSpec
	body, _, err := readFrame(sock)
	if err != nil || decode(body, &box) != nil {
		return 1
	}
	body, fds, err := readFrame(sock)
	if err != nil {
		return 0
	}
	var cmd commandSpec
	if err := decode(body, &cmd); err != nil {
		return 1
	}
	runtime.LockOSThread() // what follows is of one thread, and exec keeps that one
	err = confineAndRun(&box, &cmd, fds)
	_ = tell(sock, failure(err))
	return 1
}

// confineAndRun returns only with an error.
func confineAndRun(box *boxSpec, cmd *commandSpec, fds []int) error {
	l := box.layers
	if len(fds) != 3 {
		return errFrame
	}
	for i, fd := range fds {
		if l.has(layerUID) {
			var st unix.Stat_t
			if unix.Fstat(fd, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFIFO {
				_ = unix.Fchown(fd, box.uid, box.gid) // so that /dev/stdout can be opened
			}
		}
		if err := unix.Dup3(fd, i, 0); err != nil {
			return at("set the streams", err)
		}
	}
	if l.has(layerMount) && !cmd.self {
		if err := unix.Unmount(hiddenExe, unix.MNT_DETACH); err != nil {
			return at("hide the sandbox's program", err)
		}
	}
	limits := box.limits
	if l.has(layerLimits) {
		_ = os.WriteFile("/proc/self/oom_score_adj", []byte("500"), 0) // a command goes before the worker
		limits.FileBytes = spareOf(box.writable).bound(limits.FileBytes)
	}
	var none unix.Sigset_t
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &none, nil); err != nil {
		return at("clear the signal mask", err)
	}
	if err := identity(box); err != nil {
		return err
	}
	if err := unix.Chdir(cmd.dir); err != nil {
		return at("enter the folder "+strconv.Quote(clipText(cmd.dir)), err)
	}
	if l.has(layerLandlock) {
		if err := restrictFiles(box, cmd); err != nil {
			return err
		}
	}
	var bounds []bound
	if l.has(layerLimits) {
		var err error
		if bounds, err = limits.bounds(box.tasks); err != nil {
			return err
		}
	}
	if l.has(layerSeccomp) {
		if err := restrictCalls(l); err != nil {
			return err
		}
	}
	return at("execute it in "+strconv.Quote(clipText(cmd.dir)), execBound(bounds, cmd))
}

// identity gives the thread the box's uid and takes every capability, and every way to one.
func identity(box *boxSpec) error {
	l := box.layers
	if l.has(layerCaps) {
		for c := range uintptr(64) {
			// Past the last the kernel says EINVAL; who may not drop has none to drop, since an exec gives none without new privileges.
			if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil {
				break
			}
		}
	}
	if l.has(layerUID) {
		for _, step := range []struct {
			call    uintptr
			a, b, c int
		}{{unix.SYS_SETGROUPS, 0, 0, 0}, {unix.SYS_SETRESGID, box.gid, box.gid, box.gid}, {unix.SYS_SETRESUID, box.uid, box.uid, box.uid}} {
			// Of this thread only: the library's way would change all of them, and waits for each.
			if _, _, no := unix.RawSyscall(step.call, uintptr(step.a), uintptr(step.b), uintptr(step.c)); no != 0 {
				return at("take the uid of the box", no)
			}
		}
	}
	if l.has(layerCaps) || l.has(layerUser) {
		if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
			return at("drop capabilities", err)
		}
	}
	if !l.has(layerCaps) {
		return nil
	}
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capset(&head, &data[0]); err != nil {
		return at("drop capabilities", err)
	}
	return at("forbid new privileges", unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
}

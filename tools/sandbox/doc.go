// Package sandbox runs commands that nobody trusts: it turns an exec.Cmd and a Policy into a confined command and a handle on
// everything the command starts. It needs no daemon and no other program, as root or not.
//
// # The processes
//
//	worker         secrets, board, models; shut to other processes of its user (not dumpable)
//	 └ launcher    small, starts with the first box: a large or shut process cannot make user namespaces, or only slowly
//	    └ holder   one a Box, that is one a job: first process of its mount, network, IPC, UTS and pid namespaces
//	       └ init  one a command: first process of a pid namespace of its own, with its own /proc
//	          └ stage → the command
//
// All of them are this program, re-executed; Main dispatches them before anything else. What to do goes over sockets that they
// inherit, never over argv or the environment, which other users can read. The holder keeps one init with its stage in the ready: a stage
// has only to confine itself and to exec, so that a command costs little more than its exec.
//
// The commands of a box share its loopback, its /tmp and its uid: a server in the background and a client in the foreground find
// each other, those of other jobs do not. The end of the worker's side of a socket, by Kill or by the worker's death, however sudden, ends
// what is on the other side. So does the end of a command: what it left behind gets a moment to finish by itself (a `tee` at the end of a
// process substitution), then it is killed and counted.
//
// # The layers
//
// Each closes what the others leave open, in the order in which a stage goes through them:
//
//	environment   exactly cmd.Env; own session, no terminal, no descriptor beyond 0, 1 and 2
//	namespaces    user (but not as root), pid, mount, network, IPC, UTS
//	new root      the system's folders read-only, what Policy names, a written /etc, six devices, a private /tmp and /dev/shm of bounded
//	              size; the rest of the machine is not there
//	own uid       as root: one that nothing else has; a mount with mapped ids shows it the job's files as its own, so that no
//	              file has to change its owner
//	capabilities  none, and no way to new ones
//	Landlock      files once more, signals and abstract sockets; that it was enforced is checked
//	seccomp       a foreign architecture is killed; mounts, namespaces, tracing, keys, io_uring, odd sockets and the like are refused
//	limits        of each process by the kernel; of memory, processes and disk in all by a guard in the init, ten times a second
//
// What of that works on a machine is found by doing it: Probe runs each rung of the ladder, with a self-test inside that also tries what it can
// reach of a worker (Report.Open), and takes the first that holds.
//
//	full            all of it
//	full-same-uid   root without mapped ids: the uid of the worker, without capabilities
//	full-no-proc    no /proc, where a container hides part of its own: no /dev/fd either, and no guard of memory
//	landlock        no namespaces: the host's processes can be seen and files outside be stat-ed and their modes changed where the
//	                uid may; no sockets; no /tmp but TMPDIR; what is Readable within a Writable folder can be written all the same
//	seccomp         system calls and limits
//	limits          limits
//	off             only where Policy says so
//
// A policy that a machine cannot follow is refused with what is missing (ErrUnavailable); nothing falls back in silence. Other systems
// than Linux have "off" only, and end a process group: a daemon that left it survives.
//
// # How a tree is ended
//
//	pidns       the init is process 1 of a pid namespace: the kernel ends the rest with it, nothing survives. Process numbers inside are
//	            high: one that a command wrote into a file names no process of the host.
//	subreaper   orphans fall to the init, which stops and kills its descendants, found in /proc, until none is left. Below rung
//	            landlock whoever may kill the init can get away; that is reported, and what can still be found is killed.
//
// # Promises
//
//   - Wait returns only when the tree is gone (or says how many survive) and both streams are drained or given up after a bound.
//   - A process that holds stdout does not hold Wait; a command that closes its stdout is not taken for ended.
//   - Signal dispositions and mask are the defaults, the umask is 022, no limit is raised.
//   - A limit that ended a command is named in Exit.Limit.
//   - Kill and Close may be called at any time, from anywhere, again and again.
//
// # What is left at rung full
//
// A command can fill its own workspace and its own limits (but for a reserve on the disk that the worker needs itself), plant symlinks and FIFOs there (package workspace is made for that), use the
// processor as much as it likes until its job's time is over, and read what Policy.Readable names. Many files that are allocated within a
// tenth of a second pass the disk limit before it ends the command.
//
// # In a container
//
// The test program runs in any image, and so do the attacks, here as compose.yaml starts the workers:
//
//	mkdir -p /tmp/attacks && CGO_ENABLED=0 go test -c -o /tmp/attacks/test ./tools/sandbox
//	docker run --rm --init --cap-drop ALL --security-opt no-new-privileges:true --pids-limit 4096 \
//	    -v /tmp/attacks:/attacks:ro --entrypoint /attacks/test muster -test.run Attacks -test.v
//
// With --security-opt seccomp=unconfined --security-opt systempaths=unconfined it is the rung full that is tried too. What the engine's own
// filter stops cannot be shown to work without a sandbox: TestAttacksWork passes over that, by a list.
//
// # Attacks and layers
//
// What `go test -run Matrix -v` prints on Linux 6.18 as root, with attacks of the same row together. W: the attack works, ·: it is blocked, or
// does no harm; ?: it could not be tried. The columns: no layer at all; environment and descriptors (which all others have too); rlimits;
// capabilities; own uid; pid namespace; new root (with it); network; IPC; Landlock (LL); seccomp (sec); then the rungs landlock and full.
//
//	none env rlim caps uid pid mnt net ipc LL sec landlock full
//	 W    W   W    W    ·   W   ·   W   W  ·   W     ·      ·
//	    write_outside write_ssh read_outside read_roundabout list_outside exec_outside
//	    mkdir_outside symlink_outside unlink_outside truncate_outside hardlink_in rename_in
//	    rename_out tmp_shared shm_shared read_shadow write_etc write_programs ctl_fd oom_adj
//	    oom_adj_bystander other_read other_write other_tmp devices sysctl sysfs cgroup
//	    mem_hog_shm tmp_fill
//	 W    W   W    W    ·   W   ·   W   W  W   W     W      ·
//	    chdir_outside stat_outside watch_outside chmod_outside chown_outside utime_outside
//	    xattr_outside list_procs
//	 W    W   W    ·    ·   W   ·   W   W  ·   ·     ·      ·
//	    exe_worker exe_bystander environ_of_any environ environ_bystander mem mem_bystander
//	    procroot procroot_bystander procfd procfd_bystander procfd_pipe procfd_pipe_bystander
//	    tiocsti other_environ other_root umount
//	 W    W   W    ·    ·   ·   ·   W   W  ·   ·     ·      ·
//	    exe_init vm_readv vm_readv_bystander vm_writev vm_writev_bystander ptrace
//	    ptrace_bystander pidfd_getfd pidfd_getfd_bystander renice renice_bystander affinity
//	    affinity_bystander scheduler scheduler_bystander kcmp kcmp_bystander setns_pidfd
//	 W    W   W    ·    ·   W   W   W   W  ·   ·     ·      ·
//	    open_by_handle setuid0 capabilities bpf perf fanotify syslog namespaces setns chroot
//	    mount mount_new mknod_null mknod_disk hostname settime adjtime reboot swap acct
//	 W    W   W    W    W   W   W   W   W  W   W     W      W
//	    symlink_plant fifo_plant
//	 W    ·   ·    ·    ·   ·   ·   ·   ·  ·   ·     ·      ·
//	    own_env parent_env leaked_fd
//	 ·    ·   ·    ·    ·   ·   ·   ·   ·  ·   ·     ·      ·
//	    init_env cmdline oom_lower open_disk x32 sysrq kexec modules
//	 W    ·   W    W    ·   ·   ·   ·   ·  ·   W     ·      ·
//	    kill_init
//	 ?    ?   ?    ?    ·   ?   ?   ?   ?  ?   ?     ?      ·
//	    suid
//	 W    W   W    W    ·   ·   ·   W   W  ·   W     ·      ·
//	    kill kill_bystander tgkill tgkill_bystander sigqueue sigqueue_bystander pidfd_kill
//	    pidfd_kill_bystander other_kill
//	 W    W   W    W    ·   ·   ·   W   W  W   ·     ·      ·
//	    prlimit prlimit_bystander
//	 W    W   W    W    W   W   W   ·   W  W   W     ?      ·
//	    tcp tcp6 udp udp6 bind_host
//	 W    W   W    W    W   W   W   ·   W  W   ?     ?      ?
//	    mptcp
//	 W    W   W    W    ·   W   ·   W   W  W   W     ?      ·
//	    unix_path unix_open
//	 W    W   W    W    W   W   W   ·   W  ·   W     ?      ·
//	    unix_abstract
//	 W    W   W    W    W   W   W   ·   W  W   W     W      ·
//	    interfaces
//	 W    W   W    W    W   W   W   W   W  W   ?     ?      ?
//	    vsock mptcp_socket
//	 W    W   W    ·    ·   W   W   W   W  ·   ?     ?      ?
//	    packet odd_families
//	 W    W   W    ·    ·   W   W   W   W  ·   ·     ?      ·
//	    raw
//	 ?    ?   ?    ?    ?   ?   ?   ?   ?  ?   ?     ?      ?
//	    alg
//	 W    W   W    W    W   W   W   ·   W  W   W     ·      ·
//	    other_tcp
//	 W    W   W    W    W   W   W   ·   W  ·   W     ·      ·
//	    other_abstract
//	 W    W   W    W    W   W   W   W   W  W   ·     ·      ·
//	    io_uring userfaultfd keyctl personality userns_bare int80 ia32_program userns
//	    userns_clone userns_clone3 mem_hog_memfds suid_fchmodat suid_fchmodat2 suid_setgid
//	    suid_fchmod suid_openat suid_openat2 suid_mknodat suid_chmod suid_open suid_creat
//	    suid_mknod
//	 W    W   W    W    ·   W   W   W   W  W   ·     ·      ·
//	    suid_tmpfile
//	 W    W   W    W    W   W   W   W   ·  W   W     ·      ·
//	    sysv_shm
//	 W    W   W    ·    ·   ·   W   W   W  ·   ·     ·      ·
//	    userns_mounts
//	 W    W   ·    W    W   W   W   W   W  W   W     ·      ·
//	    mem_hog mem_hog_procs big_file many_files tiny_files many_folders deep_folders
//	    shut_folder open_files spin spin_stubborn
//	 W    W   ·    W    W   W   W   W   ·  W   W     ·      ·
//	    mem_hog_sysv
//	 W    W   W    W    W   W   W   W   W  W   W     W      ·
//	    fork_bomb threads
//	 W    W   W    W    W   W   W   W   W  W   W     ·      ·
//	    ghost_files
//	 167 163  152  105  52 133  77 153 161 63  77       13    2   attacks that work, of 177
//
// The same as an ordinary user. It has fewer powers to begin with; a user namespace (user) takes the place of the own uid, and comes with the
// namespaces of the other columns:
//
//	none env rlim caps user pid mnt net ipc LL sec landlock full
//	 W    W    W    W    W   W   ·   W   W  ·   W     ·     ·
//	    write_outside write_ssh read_outside read_roundabout list_outside exec_outside
//	    mkdir_outside symlink_outside unlink_outside truncate_outside hardlink_in rename_in
//	    rename_out tmp_shared shm_shared write_programs ctl_fd oom_adj_bystander other_read
//	    other_write other_tmp mem_hog_shm tmp_fill
//	 W    W    W    W    W   W   ·   W   W  W   W     W     ·
//	    chdir_outside stat_outside watch_outside chmod_outside chown_outside utime_outside
//	    xattr_outside list_procs
//	 ·    ·    ·    ·    ·   ·   ·   ·   ·  ·   ·     ·     ·
//	    read_shadow write_etc exe_worker exe_init open_by_handle parent_env init_env cmdline
//	    environ mem vm_readv vm_writev ptrace procroot procfd procfd_pipe pidfd_getfd setuid0
//	    oom_lower oom_adj kcmp other_environ other_root bpf perf fanotify syslog open_disk
//	    devices x32 userns_mounts namespaces setns setns_pidfd chroot mount mount_new umount
//	    mknod_null mknod_disk sysctl sysrq sysfs cgroup hostname settime adjtime reboot kexec
//	    modules swap acct
//	 W    W    W    W    ·   ·   ·   ·   ·  ·   W     ·     ·
//	    exe_bystander environ_of_any environ_bystander mem_bystander procroot_bystander
//	    procfd_bystander procfd_pipe_bystander
//	 W    W    W    W    W   W   W   W   W  W   W     W     W
//	    symlink_plant fifo_plant
//	 W    W    W    W    W   W   W   W   W  W   ·     ·     ·
//	    suid_fchmodat suid_fchmodat2 suid_setgid suid_fchmod suid_openat suid_openat2
//	    suid_tmpfile suid_mknodat suid_chmod suid_open suid_creat suid_mknod io_uring
//	    userfaultfd keyctl personality userns_bare int80 ia32_program userns userns_clone
//	    userns_clone3 mem_hog_memfds
//	 W    ·    ·    ·    ·   ·   ·   ·   ·  ·   ·     ·     ·
//	    own_env leaked_fd tiocsti
//	 W    W    W    W    ·   ·   ·   ·   ·  ·   ·     ·     ·
//	    vm_readv_bystander vm_writev_bystander ptrace_bystander pidfd_getfd_bystander
//	    kcmp_bystander
//	 W    W    W    W    W   ·   ·   ·   W  ·   W     ·     ·
//	    kill_init
//	 ?    ?    ?    ?    ?   ?   ?   ?   ?  ?   ?     ?     ?
//	    suid alg
//	 ·    ·    ·    ·    W   W   W   W   W  ·   ·     ·     ·
//	    capabilities
//	 W    W    W    W    W   ·   ·   W   W  ·   W     ·     ·
//	    kill kill_bystander tgkill tgkill_bystander sigqueue sigqueue_bystander pidfd_kill
//	    pidfd_kill_bystander other_kill
//	 W    W    W    W    W   ·   ·   W   W  W   ·     ·     ·
//	    prlimit prlimit_bystander renice renice_bystander affinity affinity_bystander
//	    scheduler scheduler_bystander
//	 W    W    W    W    W   W   W   ·   W  W   W     ?     ·
//	    tcp tcp6 udp udp6 bind_host
//	 W    W    W    W    W   W   W   ·   W  W   ?     ?     ?
//	    mptcp
//	 W    W    W    W    W   W   ·   W   W  W   W     ?     ·
//	    unix_path unix_open
//	 W    W    W    W    W   W   W   ·   W  ·   W     ?     ·
//	    unix_abstract
//	 W    W    W    W    W   W   W   ·   W  W   W     W     ·
//	    interfaces
//	 W    W    W    W    W   W   W   W   W  W   ?     ?     ?
//	    vsock mptcp_socket
//	 ·    ·    ·    ·    ·   ·   ·   ·   ·  ·   ?     ?     ?
//	    packet odd_families
//	 ·    ·    ·    ·    ·   ·   ·   ·   ·  ·   ·     ?     ·
//	    raw
//	 W    W    W    W    W   W   W   ·   W  W   W     ·     ·
//	    other_tcp
//	 W    W    W    W    W   W   W   ·   W  ·   W     ·     ·
//	    other_abstract
//	 W    W    W    W    W   W   W   W   ·  W   W     ·     ·
//	    sysv_shm
//	 W    W    ·    W    W   W   W   W   W  W   W     ·     ·
//	    mem_hog mem_hog_procs fork_bomb threads big_file many_files tiny_files open_files
//	    many_folders deep_folders shut_folder spin spin_stubborn
//	 W    W    W    W    W   W   W   W   W  W   W     ·     ·
//	    mem_hog_sysv
//	 ·    W    ·    W    W   W   W   W   W  W   W     ·     ·
//	    ghost_files
//	 118 116 102 116 105 87 54 94 104 69 77 11 2   attacks that work, of 177
//
// TestAttacks holds what is left at full, and names what works at the weaker rungs.
package sandbox

package board

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// Every stream, bucket and subject of a board is named in this file and nowhere else. <prefix> is Config.Prefix.
//
//	<PREFIX>_EVENTS      stream     <prefix>.events.<run>.<job>.<kind>           the log
//	<PREFIX>_JOBS        stream     <prefix>.jobs.<pool>.<priority>.<job>        the queue
//	<prefix>_board       bucket     <run>.<parent|root>.<job>                    entries
//	<prefix>_workers     bucket     w.<worker>; steward                          heartbeats, with a TTL
//	<prefix>_artifacts   objects    <sha256>; staging.<unique>                   content
//	<prefix>_memory      bucket     <hash of the project>.<memory>               memories of projects
//	<prefix>_approvals   bucket     <run>.<job>.<n>; <run>.always.<hash>         questions to people
//	<prefix>.ctl.<job>   core                                                    "look at your entry"
//	<pool>_<priority>    consumer of <PREFIX>_JOBS, filter <prefix>.jobs.<pool>.<priority>.*
type names struct {
	prefix                    string
	events, jobs              string // streams
	board, workers, artifacts string // buckets
	memory, approvals         string // buckets
}

const (
	rootParent    = "root"    // stands for the parent in the key of a run's roots
	stewardKey    = "steward" // in the workers bucket: who is steward
	workerKeys    = "w."
	stagingPrefix = "staging."
)

// Made when they are first used: the program starts anew for each command of an agent, and would make them each time.
var (
	tokenForm  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`) })
	prefixForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,31}$`) })
)

func newNames(prefix string) (names, error) {
	if !prefixForm().MatchString(prefix) {
		return names{}, fmt.Errorf("prefix %q: use a letter and then up to 31 letters, digits, _ or -", prefix)
	}
	up := strings.ToUpper(prefix)
	return names{
		prefix: prefix, events: up + "_EVENTS", jobs: up + "_JOBS",
		board: prefix + "_board", workers: prefix + "_workers", artifacts: prefix + "_artifacts",
		memory: prefix + "_memory", approvals: prefix + "_approvals",
	}, nil
}

func (n names) allEvents() string                  { return n.prefix + ".events.*.*.*" }
func (n names) event(run, job, kind string) string { return n.log(run, job, kind) }
func (n names) logOf(run, job string) string       { return n.log(run, job, ">") }
func (n names) log(run, job, last string) string {
	return n.prefix + ".events." + run + "." + job + "." + last
}

func (n names) allPointers() string { return n.prefix + ".jobs.*.*.*" }
func (n names) lane(pool string, p Priority) string {
	return n.prefix + ".jobs." + encodeToken(pool) + "." + string(p) + "."
}
func (n names) pointer(e Entry) string                  { return n.lane(e.Pool, e.Priority) + e.ID }
func (n names) consumer(pool string, p Priority) string { return encodeToken(pool) + "_" + string(p) }

func (n names) ctl(job string) string { return n.prefix + ".ctl." + job }

// boardStream and entrySubject are what the bucket of entries is made of.
func (n names) boardStream() string            { return "KV_" + n.board }
func (n names) entrySubject(key string) string { return "$KV." + n.board + "." + key }

// memoryKey is the key of a memory. A project is named by people, paths and commits: its hash is a legal token.
func (n names) memoryKey(project, id string) string {
	sum := sha256.Sum256([]byte(project))
	return hex.EncodeToString(sum[:8]) + "." + id
}

func (n names) remembered(project, id string) string {
	return "$KV." + n.memory + "." + n.memoryKey(project, id)
}

func (n names) question(key string) string { return "$KV." + n.approvals + "." + key }

func entryKey(run, parent, job string) string {
	if parent == "" {
		parent = rootParent
	}
	return run + "." + parent + "." + job
}

func (e Entry) key() string { return entryKey(e.Run, e.Parent, e.ID) }

// lastToken is the job's id in a subject or key of a job.
func lastToken(subject string) string { return subject[strings.LastIndexByte(subject, '.')+1:] }

// encodeToken makes one legal token of a name that came from a person: other bytes than letters, digits, _ and - become =XX.
func encodeToken(name string) string {
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		if c == '_' || c == '-' || '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' {
			b.WriteByte(c)
			continue
		}
		fmt.Fprintf(&b, "=%02X", c)
	}
	if b.Len() == 0 {
		return "="
	}
	return b.String()
}

// Package policy is what a host allows the commands of its jobs, what a job asks for, and how the two become one.
//
// A host (the flags and the configuration of whoever works) has a Sandbox, a job has one, and the commands of the job run under
// host.Narrow(job): at least the higher of the two rungs, no more network than either allows, the domains of both, the lower of each limit. A
// job never widens what the host says: one that asks for more is refused with words that name what.
//
// # Rungs
//
// How well commands are confined is one word, and Rungs lists them all, the best first. Package tools/sandbox finds out which a machine
// has, and says what each means. "off" is the last: no job can ask for it, and nothing that asks for a rung is done there.
//
// # Promises
//
//   - Narrow is no wider than either of its two sides.
//   - What is not known is refused, in a plan and on the wire: a rung, a kind of network or a domain that nobody can hold to is not
//     taken for a weaker one.
package policy

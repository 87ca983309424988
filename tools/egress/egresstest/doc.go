// Package egresstest gives tests a network of their own on loopback: a name server whose answers the test writes down (Nameserver, for
// egress.Dialer.Resolver), and the proof that nobody ever connected to a listener (Untouched).
package egresstest

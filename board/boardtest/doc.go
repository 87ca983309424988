// Package boardtest gives tests a real board: New starts a server of its own in the test's folder and connects to it, Serve runs a worker
// on it. Both end with the test, worker before server, and fail it when they do not end well.
package boardtest

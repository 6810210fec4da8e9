package main

import (
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
)

// untilAbandoned ends the process as soon as nobody wants it any more: its standard input is
// closed (which the system does when the parent dies, however it dies) or a signal asks for it.
// It ends at once and not gracefully, because what it holds is worthless without the test.
func untilAbandoned(cleanUp func()) {
	// The dead parent reads no log any more; a line too many must not keep us from cleaning up.
	signal.Ignore(syscall.SIGPIPE)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	abandoned := make(chan struct{})
	go func() {
		// Whatever is sent is ignored; an error is an end as well.
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(abandoned)
	}()
	go func() {
		select {
		case <-signals:
		case <-abandoned:
		}
		cleanUp()
		os.Exit(0)
	}()
}

// limitMemory keeps the garbage of a long load from growing to gigabytes. GOGC and GOMEMLIMIT of
// the environment go first.
func limitMemory(bytes int64) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(50)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(bytes)
	}
}

package main

import (
	"bufio"
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

// tally counts what the controller does, as tests/src/measured/tally.rs does for the other side.
type tally struct {
	begun    time.Time
	expected uint64

	mutex   sync.Mutex
	figures figures
}

// figures are printed as JSON for each line that comes in.
type figures struct {
	Turns        uint64            `json:"turns"`
	AllHadATurn  *duration         `json:"all_had_a_turn"`
	LastTurn     *duration         `json:"last_reconciliation"`
	FirstWrite   *duration         `json:"first_write"`
	LastWrite    *duration         `json:"last_write"`
	Writes       uint64            `json:"writes"`
	BytesWritten int64             `json:"bytes_written"`
	Requests     map[string]uint64 `json:"requests"`
}

type duration struct {
	Secs  int64 `json:"secs"`
	Nanos int64 `json:"nanos"`
}

func newTally(expected uint64) *tally {
	return &tally{begun: time.Now(), expected: expected, figures: figures{Requests: map[string]uint64{}}}
}

// turn notes that an object has its turn.
func (t *tally) turn() {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.figures.Turns++
	t.figures.LastTurn = t.now()
	if t.figures.Turns == t.expected {
		t.figures.AllHadATurn = t.figures.LastTurn
	}
}

func (t *tally) request(request *http.Request) {
	verb := request.Method
	if verb == http.MethodGet && strings.Contains(request.URL.RawQuery, "watch=true") {
		verb = "WATCH"
	}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if request.Method != http.MethodGet {
		now := t.now()
		if t.figures.FirstWrite == nil {
			t.figures.FirstWrite = now
		}
		t.figures.LastWrite = now
		t.figures.Writes++
		t.figures.BytesWritten += max(request.ContentLength, 0)
	}
	t.figures.Requests[verb+" "+resource(request.URL.Path)]++
}

func (t *tally) now() *duration {
	since := time.Since(t.begun)
	return &duration{int64(since / time.Second), int64(since % time.Second)}
}

// answer ends the process when nobody asks any more.
func (t *tally) answer() {
	lines, answers := bufio.NewScanner(os.Stdin), json.NewEncoder(os.Stdout)
	for lines.Scan() {
		t.mutex.Lock()
		err := answers.Encode(t.figures)
		t.mutex.Unlock()
		if err != nil {
			break
		}
	}
	os.Exit(0)
}

// resource is that of a path with its subresource (e.g. `charts/status`); the path itself where it has none.
func resource(path string) string {
	segments := strings.Split(strings.Trim(path, "/"), "/")
	below := 0
	switch {
	case segments[0] == "api" && len(segments) > 2:
		below = 2
	case segments[0] == "apis" && len(segments) > 3:
		below = 3
	default:
		return path
	}
	segments = segments[below:]
	if segments[0] == "namespaces" && len(segments) > 2 {
		segments = segments[2:]
	}
	if len(segments) > 2 {
		return segments[0] + "/" + segments[2]
	}
	return segments[0]
}

// counting is a transport that counts what is sent.
type counting struct {
	tally *tally
	next  http.RoundTripper
}

func (c counting) RoundTrip(request *http.Request) (*http.Response, error) {
	c.tally.request(request)
	return c.next.RoundTrip(request)
}

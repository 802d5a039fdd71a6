// Holds a lock and works under it: go run lock.go RECIPE [STEPS]
//
// Ends with 0 after that many steps, or goes on without STEPS. Ends with 76 as soon as the lock is lost.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

func socket() string {
	if socket := os.Getenv("WOK_SOCKET"); socket != "" {
		return socket
	}
	if os.Geteuid() == 0 {
		return "/run/wok/wok.sock"
	}
	if runtime := os.Getenv("XDG_RUNTIME_DIR"); runtime != "" {
		return runtime + "/wok.sock"
	}
	return fmt.Sprintf("%s/wok-%d/wok.sock", os.TempDir(), os.Geteuid())
}

// What is read of a line. A fence is a number, or its text where it is beyond 2^53.
type line struct {
	Event    string
	Fence    json.RawMessage
	Deadline int64 `json:"deadline-boottime-ms"`
	Message  string
	Error    json.RawMessage
}

// The lock is held until this, on CLOCK_BOOTTIME, in milliseconds.
var deadline atomic.Int64

// The standard library does not have CLOCK_BOOTTIME. /proc/uptime begins with it, rounded down to 10 ms.
func boottime() int64 {
	text, err := os.ReadFile("/proc/uptime")
	if err != nil {
		giveUp("no clock: " + err.Error())
	}
	seconds, err := strconv.ParseFloat(strings.Fields(string(text))[0], 64)
	if err != nil {
		giveUp("no clock: " + err.Error())
	}
	return int64(seconds*1000) + 10
}

func giveUp(why string) {
	fmt.Println("lost:", why)
	os.Exit(76)
}

// To be called before each write: this process may have been stopped for long, and wok as well.
func check() {
	if until := deadline.Load(); until > 0 && boottime() >= until {
		giveUp("the deadline has passed")
	}
}

// Follows the lock, and ends the process when the lock may be lost.
func follow(recipe string, held chan<- string) {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket())
	}
	client := http.Client{Transport: &http.Transport{DialContext: dial}}
	body := strings.NewReader(`{"call": "acquire"}`)
	answer, err := client.Post("http://wok/v1/recipes/"+recipe+"/join?alive=500ms", "application/json", body)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		if answer.StatusCode != http.StatusOK {
			fmt.Fprintln(os.Stderr, lines.Text())
			os.Exit(1)
		}
		var line line
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			giveUp(err.Error())
		}
		if line.Deadline > 0 {
			deadline.Store(line.Deadline)
		}
		switch line.Event {
		case "waiting":
			fmt.Println("waiting")
		case "held":
			fence := strings.Trim(string(line.Fence), `"`)
			fmt.Println("held with fence", fence)
			held <- fence
		case "lost", "leaving", "released", "refused", "ended":
			giveUp(line.Message + string(line.Error))
		}
	}
	giveUp("the stream broke off")
}

func main() {
	recipe, steps := os.Args[1], 0
	if len(os.Args) > 2 {
		var err error
		if steps, err = strconv.Atoi(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	held := make(chan string)
	go follow(recipe, held)
	fence := <-held
	// Also a wok that says nothing is noticed.
	go func() {
		for range time.Tick(100 * time.Millisecond) {
			check()
		}
	}()
	for step := 1; steps == 0 || step <= steps; step++ {
		check()
		// Whatever is written to should refuse a fence that is lower than the highest it has seen.
		fmt.Printf("step %d with fence %s\n", step, fence)
		time.Sleep(200 * time.Millisecond)
	}
}

// Puts items into a queue, or takes them: go run jobs.go put RECIPE ITEM... | jobs.go take RECIPE [COUNT]
//
// `take` ends with 0 after that many items, or goes on without COUNT. It ends with 76 when an item that it
// worked on has been lost meanwhile.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
)

var wok = http.Client{Transport: &http.Transport{
	DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket())
	},
}}

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
	return fmt.Sprintf("/tmp/wok-%d/wok.sock", os.Geteuid())
}

// Posts, and answers the body of the answer, which may still be coming.
func post(path string, arguments map[string]string) io.ReadCloser {
	body, _ := json.Marshal(arguments)
	answer, err := wok.Post("http://wok/v1/"+path, "application/json", bytes.NewReader(body))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if answer.StatusCode == http.StatusOK {
		return answer.Body
	}
	text, _ := io.ReadAll(answer.Body)
	// 409 is the queue's own answer, 410 that this participant has ended.
	if answer.StatusCode == http.StatusConflict || answer.StatusCode == http.StatusGone {
		fmt.Printf("lost: %s", text)
		os.Exit(76)
	}
	fmt.Fprintf(os.Stderr, "%s: %s", path, text)
	os.Exit(1)
	return nil
}

// Calls an operation, and reads its answer.
func call(path string, arguments map[string]string, into any) {
	body := post(path, arguments)
	defer body.Close()
	if err := json.NewDecoder(body).Decode(into); err != nil {
		fmt.Fprintln(os.Stderr, path, err)
		os.Exit(1)
	}
}

func put(recipe string, items []string) {
	for _, item := range items {
		var nothing any
		call("recipes/"+recipe+"/call/put", map[string]string{"data": item}, &nothing)
		fmt.Println("put", item)
	}
}

func take(recipe string, count int) {
	// The stream keeps the participant, so it has to be read, whatever it says.
	stream := post("recipes/"+recipe+"/join", map[string]string{})
	lines := json.NewDecoder(stream)
	var joined struct{ Participant string }
	if err := lines.Decode(&joined); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	go io.Copy(io.Discard, stream)
	for taken := 0; count == 0 || taken < count; taken++ {
		var item struct {
			Data  string
			Fence json.Number
		}
		call("participants/"+joined.Participant+"/take", nil, &item)
		// The item comes back to somebody else if this process dies here. So the work may be done twice, and
		// whatever is written to should refuse a fence that is lower than the highest it has seen.
		fmt.Printf("took %s with fence %s\n", item.Data, item.Fence)
		var nothing any
		call("participants/"+joined.Participant+"/ack", nil, &nothing)
		fmt.Println("done", item.Data)
	}
}

func main() {
	recipe, words := os.Args[2], os.Args[3:]
	if os.Args[1] == "put" {
		put(recipe, words)
		return
	}
	count := 0
	if len(words) > 0 {
		count, _ = strconv.Atoi(words[0])
	}
	take(recipe, count)
}

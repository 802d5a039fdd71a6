// Puts items into a queue, or takes them: go run jobs.go put RECIPE ITEM... | jobs.go take RECIPE [COUNT]
//
// `take` ends with 0 after that many items, or goes on without COUNT. It joins again when its participant has
// ended or wok is gone. It ends with 76 when an item that it worked on has been lost meanwhile.
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
	"strings"
	"time"
)

var wok = http.Client{Transport: &http.Transport{
	// wok closes a connection that is idle for ten seconds, and work may take longer.
	DisableKeepAlives: true,
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
	return fmt.Sprintf("%s/wok-%d/wok.sock", os.TempDir(), os.Geteuid())
}

// Posts, and answers the body of the answer, which may still be coming. An error says that the participant has
// ended or is of no use, or that wok is gone or has no session.
func post(path string, arguments map[string]string) (io.ReadCloser, error) {
	body, _ := json.Marshal(arguments)
	answer, err := wok.Post("http://wok/v1/"+path, "application/json", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if answer.StatusCode == http.StatusOK {
		return answer.Body, nil
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	var told struct {
		Error   any
		Message string
	}
	problem := fmt.Errorf("%s: %s", path, strings.TrimSpace(string(text)))
	if json.Unmarshal(text, &told) == nil && told.Message != "" {
		problem = fmt.Errorf("%s: %s", path, told.Message)
	}
	switch status := answer.StatusCode; {
	// The queue's own answer; this participant has ended; there is no session.
	case status == http.StatusConflict, status == http.StatusGone, status == http.StatusServiceUnavailable:
		return nil, problem
	// A daemon that was started again never knew this participant. Another 404 is `no-operation`: the recipe is
	// no queue, and never will be.
	case told.Error == "not-found" && strings.HasPrefix(path, "participants/"):
		return nil, problem
	}
	end(1, problem)
	return nil, nil
}

// Calls an operation, and reads its answer.
func call(path string, arguments map[string]string, into any) error {
	body, err := post(path, arguments)
	if err != nil {
		return err
	}
	defer body.Close()
	return json.NewDecoder(body).Decode(into)
}

func end(code int, why error) {
	fmt.Fprintln(os.Stderr, why)
	os.Exit(code)
}

func put(recipe string, items []string) {
	for _, item := range items {
		var nothing any
		if err := call("recipes/"+recipe+"/call/put", map[string]string{"data": item}, &nothing); err != nil {
			end(1, err)
		}
		fmt.Println("put", item)
	}
}

type joined struct {
	Participant string
	stream      io.Closer
}

func join(recipe string) (*joined, error) {
	stream, err := post("recipes/"+recipe+"/join", map[string]string{})
	if err != nil {
		return nil, err
	}
	app := &joined{stream: stream}
	if err := json.NewDecoder(stream).Decode(app); err != nil {
		stream.Close()
		return nil, err
	}
	// The stream keeps the participant, so it has to be read, whatever it says.
	go io.Copy(io.Discard, stream)
	return app, nil
}

type item struct {
	Data  data
	Fence json.Number
}

// What is no text comes as {"base64":"..."}, and stays so.
type data string

func (it *data) UnmarshalJSON(text []byte) error {
	if json.Unmarshal(text, (*string)(it)) != nil {
		*it = data(text)
	}
	return nil
}

// Takes an item with the participant, or with a new one where there is none.
func next(recipe string, app **joined) (taken item, err error) {
	if *app == nil {
		if *app, err = join(recipe); err != nil {
			return taken, err
		}
	}
	err = call("participants/"+(*app).Participant+"/take", nil, &taken)
	return taken, err
}

func take(recipe string, count int) {
	var app *joined
	for taken := 0; count == 0 || taken < count; {
		item, err := next(recipe, &app)
		if err != nil {
			// Nothing is lost: what a participant has taken that has ended comes back. This one may not have
			// ended yet.
			fmt.Fprintln(os.Stderr, "joining again:", err)
			if app != nil {
				app.stream.Close()
				app = nil
			}
			time.Sleep(time.Second)
			continue
		}
		// The item comes back to somebody else if this process dies here. So the work may be done twice, and
		// whatever is written to should refuse a fence that is lower than the highest it has seen.
		fmt.Printf("took %s with fence %s\n", item.Data, item.Fence)
		var nothing any
		if err := call("participants/"+app.Participant+"/ack", nil, &nothing); err != nil {
			fmt.Println("lost:", err)
			os.Exit(76)
		}
		fmt.Println("done", item.Data)
		taken++
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
		var err error
		if count, err = strconv.Atoi(words[0]); err != nil {
			end(1, err)
		}
	}
	take(recipe, count)
}

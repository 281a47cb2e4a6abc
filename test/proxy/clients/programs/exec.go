// What a kubelet does for `kubectl exec`: it runs the command that the query names, over SPDY or WebSocket. It prints its port.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"

	"github.com/docker/spdystream"
	"golang.org/x/net/websocket"
)

type streams struct {
	stdin                 io.Reader
	stdout, stderr, ended io.Writer
}

// A connection of which something was read already.
type begun struct {
	net.Conn
	reader io.Reader
}

func (from begun) Read(into []byte) (int, error) {
	return from.reader.Read(into)
}

// The last that a client reads is a Status, with the exit code.
func execute(query map[string][]string, to streams) {
	command := exec.Command(query["command"][0], query["command"][1:]...)
	command.Stdin, command.Stdout, command.Stderr = to.stdin, to.stdout, to.stderr
	status := map[string]interface{}{"kind": "Status", "apiVersion": "v1", "status": "Success"}
	var failed *exec.ExitError
	if errors.As(command.Run(), &failed) {
		cause := map[string]string{"reason": "ExitCode", "message": strconv.Itoa(failed.ExitCode())}
		status["status"], status["reason"] = "Failure", "NonZeroExitCode"
		status["message"] = failed.Error()
		status["details"] = map[string]interface{}{"causes": []interface{}{cause}}
	}
	text, _ := json.Marshal(status)
	to.ended.Write(text)
}

func bySpdy(writer http.ResponseWriter, request *http.Request) {
	query := request.URL.Query()
	wanted := 1
	for _, name := range []string{"stdin", "stdout", "stderr"} {
		if query.Get(name) == "true" {
			wanted++
		}
	}
	writer.Header().Set("Connection", "Upgrade")
	writer.Header().Set("Upgrade", "SPDY/3.1")
	writer.Header().Set("X-Stream-Protocol-Version", "v4.channel.k8s.io")
	writer.WriteHeader(http.StatusSwitchingProtocols)
	socket, buffered, _ := writer.(http.Hijacker).Hijack()
	// A fast client has sent its first bytes by now, which the server of net/http has read.
	connection, _ := spdystream.NewConnection(begun{socket, buffered.Reader}, true)
	opened := make(chan *spdystream.Stream, 4)
	go connection.Serve(func(stream *spdystream.Stream) {
		stream.SendReply(http.Header{}, false)
		opened <- stream
	})
	all := map[string]*spdystream.Stream{}
	for len(all) < wanted {
		stream := <-opened
		all[stream.Headers().Get("Streamtype")] = stream
	}
	to := streams{ended: all["error"]}
	if stream := all["stdin"]; stream != nil {
		to.stdin = stream
	}
	if stream := all["stdout"]; stream != nil {
		to.stdout = stream
	}
	if stream := all["stderr"]; stream != nil {
		to.stderr = stream
	}
	execute(query, to)
	for _, stream := range all {
		stream.Close()
	}
	connection.CloseWait()
}

// A message begins with the number of its channel: 0 to 2 as everywhere, 3 is for the Status, 255 closes the one after it.
type channel struct {
	socket *websocket.Conn
	number byte
}

func (to channel) Write(text []byte) (int, error) {
	return len(text), websocket.Message.Send(to.socket, append([]byte{to.number}, text...))
}

func byWebSocket(socket *websocket.Conn) {
	defer socket.Close()
	query := socket.Request().URL.Query()
	to := streams{stdout: channel{socket, 1}, stderr: channel{socket, 2}, ended: channel{socket, 3}}
	if query.Get("stdin") == "true" {
		reader, writer := io.Pipe()
		to.stdin = reader
		go func() {
			defer writer.Close()
			var message []byte
			for websocket.Message.Receive(socket, &message) == nil && len(message) > 0 && message[0] == 0 {
				writer.Write(message[1:])
			}
		}()
	}
	execute(query, to)
}

func main() {
	shake := func(config *websocket.Config, _ *http.Request) error {
		config.Protocol = []string{"v5.channel.k8s.io"}
		return nil
	}
	sockets := websocket.Server{Handler: byWebSocket, Handshake: shake}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	// It ends with who started it.
	go func() {
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	http.Serve(listener, http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		if request.Header.Get("Upgrade") == "SPDY/3.1" {
			bySpdy(writer, request)
		} else {
			sockets.ServeHTTP(writer, request)
		}
	}))
}

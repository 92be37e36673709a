"""A model that is a script: loopback mocks of the model APIs that the agent programs speak.

One server answers all of them, each in its own streaming form:

    POST /v1/messages            Anthropic Messages (Claude Code)
    POST /v1/responses           OpenAI Responses (Codex)
    POST /v1/chat/completions    OpenAI Chat Completions (opencode)
    POST /v1beta/models/M:streamGenerateContent   Gemini

What it answers is a list of rules, each used once: (text that the model was told last, `Say`, `Call` or `Fail`).
Whatever no rule answers is answered with "ok", which ends the turn.
Every request of a turn is kept as `Request`, with the moment it arrived, so that a check sees exactly what the model saw, and when.
Requests that offer no tools (titles, summaries) are answered and kept apart: they are no turns.
"""

import json
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Say:
    text: str


@dataclass
class Call:
    tool: str
    arguments: dict
    namespace: str = None  # Codex offers the tools of an MCP server as a namespace


@dataclass
class Fail:
    """The API itself answers with an error."""

    status: int
    message: str


@dataclass
class Request:
    """One request of a turn, in the words that all the APIs share."""

    at: float  # time.time() when its body had arrived
    api: str
    told: str  # what came since the model spoke last: user text, tool results, reminders
    tools: list
    headers: dict
    body: dict = field(repr=False)

    @property
    def session(self):
        """The conversation that it belongs to, by the agent's own id."""
        headers = {key.lower(): value for key, value in self.headers.items()}
        named = ("x-claude-code-session-id", "x-session-id", "thread-id", "session-id", "session_id")
        return next((headers[name] for name in named if name in headers), self.body.get("prompt_cache_key"))


class Model:
    """The server, and what it was told."""

    def __init__(self, *rules):
        self.rules = list(rules)
        self.requests = []
        self.asides = []
        self.lock = threading.Lock()
        model = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                # Lists of models, which some programs ask for at their start.
                self.answer_json({"data": [], "object": "list", "has_more": False})

            def do_POST(self):
                raw = self.rfile.read(int(self.headers.get("content-length", 0)))
                at = time.time()
                path = self.path.split("?")[0]
                try:
                    body = json.loads(raw or b"{}")
                except ValueError:
                    body = {}
                api = next((api for api in APIS if api.serves(path)), None)
                if api is None:
                    return self.answer_json({"input_tokens": 1, "totalTokens": 1})
                request = Request(at, api.name, api.told(body), api.tools(body), dict(self.headers), body)
                reply = model.reply(request)
                if isinstance(reply, Fail):
                    error = {"type": "invalid_request_error", "message": reply.message, "code": reply.status}
                    self.answer_json({"type": "error", "error": error}, reply.status)
                elif body.get("stream", api.streams(path)):
                    self.answer_stream(api.stream(reply))
                else:
                    self.answer_json(api.whole(reply))

            def answer_json(self, body, status=200):
                data = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def answer_stream(self, events):
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.send_header("connection", "close")
                self.end_headers()
                for name, data in events:
                    head = f"event: {name}\n" if name else ""
                    text = data if isinstance(data, str) else json.dumps(data)
                    self.wfile.write(f"{head}data: {text}\n\n".encode())
                self.wfile.flush()
                self.close_connection = True

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):  # An agent that was killed in the middle of an answer.
                pass

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def reply(self, request):
        with self.lock:
            if not request.tools:
                self.asides.append(request)
                return Say("A title")
            self.requests.append(request)
            index = next((index for index, (told, _) in enumerate(self.rules) if told in request.told), None)
            reply = Say("ok") if index is None else self.rules.pop(index)[1]
        return reply(request) if callable(reply) else reply

    def when(self, told, reply):
        """One more rule. A reply may be a function of the request, for what is only known by then."""
        with self.lock:
            self.rules.append((told, reply))

    def told(self, text):
        """The requests whose news contain `text`: one each time the model was told, however long the history that follows."""
        with self.lock:
            return [request for request in self.requests if text in request.told]

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def text_of(content):
    """The text in a message's content, whatever its shape."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(text_of(part) for part in content)
    if isinstance(content, dict):
        return "\n".join(text_of(content[key]) for key in ("text", "content", "output", "parts", "functionResponse", "response") if key in content)
    return ""


def since(messages, spoke):
    """The text of the messages after the last one that the model itself spoke."""
    news = []
    for message in reversed(messages):
        if spoke(message):
            break
        news.append(text_of(message))
    return "\n".join(reversed(news))


USAGE = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}


class Api:
    """One of them: whether a path is its own, what a request tells the model, and an answer in its form, whole or as a stream."""

    @staticmethod
    def streams(_):
        """Whether the path says that the answer is to be streamed; else the request does."""
        return False


class Anthropic(Api):
    name = "anthropic"

    @staticmethod
    def serves(path):
        return path == "/v1/messages"

    @staticmethod
    def told(body):
        return since(body.get("messages", []), lambda message: message.get("role") == "assistant")

    @staticmethod
    def tools(body):
        return [tool.get("name") for tool in body.get("tools") or []]

    @classmethod
    def whole(cls, reply):
        block, reason = cls.block(reply)
        return {"id": name("msg"), "type": "message", "role": "assistant", "model": "mock", "content": [block], "stop_reason": reason,
                "stop_sequence": None, "usage": USAGE}

    @staticmethod
    def block(reply):
        if isinstance(reply, Say):
            return {"type": "text", "text": reply.text}, "end_turn"
        return {"type": "tool_use", "id": name("toolu"), "name": reply.tool, "input": reply.arguments}, "tool_use"

    @classmethod
    def stream(cls, reply):
        whole = cls.whole(reply)
        block = whole["content"][0]
        if block["type"] == "text":
            empty, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            empty, delta = {**block, "input": {}}, {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        events = [
            {"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}},
            {"type": "content_block_start", "index": 0, "content_block": empty},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": whole["stop_reason"], "stop_sequence": None}, "usage": USAGE},
            {"type": "message_stop"},
        ]
        return [(event["type"], event) for event in events]


class Responses(Api):
    name = "responses"

    @staticmethod
    def serves(path):
        return path.endswith("/responses")

    @staticmethod
    def told(body):
        spoke = lambda item: item.get("role") == "assistant" or item.get("type") in ("function_call", "custom_tool_call", "reasoning")
        items = body.get("input", [])
        return items if isinstance(items, str) else since(items, spoke)

    @staticmethod
    def tools(body):
        return [tool.get("name") or tool.get("type") for tool in body.get("tools") or []]

    @staticmethod
    def item(reply):
        if isinstance(reply, Say):
            content = [{"type": "output_text", "text": reply.text, "annotations": []}]
            return {"type": "message", "id": name("msg"), "role": "assistant", "status": "completed", "content": content}
        return {"type": "function_call", "id": name("fc"), "call_id": name("call"), "name": reply.tool, "arguments": json.dumps(reply.arguments),
                "status": "completed", **({"namespace": reply.namespace} if reply.namespace else {})}

    @classmethod
    def whole(cls, reply):
        usage = {**USAGE, "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
        return {"id": name("resp"), "object": "response", "status": "completed", "model": "mock", "output": [cls.item(reply)], "usage": usage}

    @classmethod
    def stream(cls, reply):
        whole = cls.whole(reply)
        item = whole["output"][0]
        events = [{"type": "response.created", "response": {**whole, "status": "in_progress", "output": []}},
                  {"type": "response.output_item.added", "output_index": 0, "item": {**item, "status": "in_progress"}}]
        if isinstance(reply, Say):
            events.append({"type": "response.output_text.delta", "item_id": item["id"], "output_index": 0, "content_index": 0, "delta": reply.text})
        events += [{"type": "response.output_item.done", "output_index": 0, "item": item}, {"type": "response.completed", "response": whole}]
        return [(event["type"], event) for event in events]


class Chat(Api):
    name = "chat"

    @staticmethod
    def serves(path):
        return path.endswith("/chat/completions")

    @staticmethod
    def told(body):
        return since(body.get("messages", []), lambda message: message.get("role") == "assistant")

    @staticmethod
    def tools(body):
        return [tool.get("function", {}).get("name") for tool in body.get("tools") or []]

    @staticmethod
    def message(reply):
        if isinstance(reply, Say):
            return {"role": "assistant", "content": reply.text}, "stop"
        call = {"index": 0, "id": name("call"), "type": "function", "function": {"name": reply.tool, "arguments": json.dumps(reply.arguments)}}
        return {"role": "assistant", "content": None, "tool_calls": [call]}, "tool_calls"

    @classmethod
    def whole(cls, reply):
        message, reason = cls.message(reply)
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        return {"id": name("chatcmpl"), "object": "chat.completion", "created": 0, "model": "mock", "usage": usage,
                "choices": [{"index": 0, "message": message, "finish_reason": reason}]}

    @classmethod
    def stream(cls, reply):
        whole = {**cls.whole(reply), "object": "chat.completion.chunk"}
        choice = whole["choices"][0]
        delta = {"index": 0, "delta": choice["message"], "finish_reason": None}
        end = {"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}
        return [(None, {**whole, "choices": [delta], "usage": None}), (None, {**whole, "choices": [end]}), (None, "[DONE]")]


class Gemini(Api):
    name = "gemini"

    @staticmethod
    def serves(path):
        return path.endswith("enerateContent")

    @staticmethod
    def streams(path):
        return path.endswith(":streamGenerateContent")

    @staticmethod
    def told(body):
        return since(body.get("contents", []), lambda message: message.get("role") == "model")

    @staticmethod
    def tools(body):
        return [each.get("name") for tool in body.get("tools") or [] for each in tool.get("functionDeclarations", [])]

    @staticmethod
    def whole(reply):
        part = {"text": reply.text} if isinstance(reply, Say) else {"functionCall": {"name": reply.tool, "args": reply.arguments}}
        usage = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
        return {"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}], "usageMetadata": usage}

    @classmethod
    def stream(cls, reply):
        return [(None, cls.whole(reply))]


APIS = [Anthropic, Responses, Chat, Gemini]

_counter = iter(range(1, 1 << 30))


def name(kind):
    return f"{kind}_mock{next(_counter):06}"

import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
// src/domain/abort.ts
async function unlessAborted(work, signal, onLate) {
	if (signal === void 0) return work;
	const { promise: aborted, reject } = Promise.withResolvers();
	const abort = () => reject(signal.reason);
	signal.addEventListener("abort", abort, { once: true });
	if (signal.aborted) abort();
	try {
		return await Promise.race([aborted, work]);
	} catch (error) {
		if (onLate !== void 0) work.then(onLate).catch(() => void 0);
		throw error;
	} finally {
		signal.removeEventListener("abort", abort);
	}
}
async function withDeadline(ms, work) {
	const deadline = new AbortController();
	let timer;
	const late = new Promise((_, reject) => {
		timer = setTimeout(() => {
			const error = new DeadlineError();
			reject(error);
			deadline.abort(error);
		}, ms);
	});
	try {
		return await Promise.race([work(deadline.signal), late]);
	} finally {
		clearTimeout(timer);
	}
}
var DeadlineError = class extends Error {
	name = "DeadlineError";
};
// src/client/abort.ts
function pause(ms, signal) {
	let timer;
	return unlessAborted(new Promise((resolve) => {
		timer = setTimeout(resolve, ms);
	}), signal).finally(() => clearTimeout(timer));
}
// src/client/errors.ts
var MayflyError = class extends Error {
	name = "MayflyError";
	code;
	status;
	requestId;
	retryAfterSeconds;
	scope;
	reason;
	constructor(facts) {
		super(facts.message);
		this.code = facts.code;
		this.status = facts.status;
		this.requestId = facts.requestId;
		this.retryAfterSeconds = facts.retryAfterSeconds;
		this.scope = facts.scope;
		this.reason = facts.reason;
	}
};
const isGone = (error) => error instanceof MayflyError && (error.code === "not_found" || error.code === "gone");
const MESSAGES = {
	refused: "nothing is listening there",
	dns: "the name cannot be resolved",
	timeout: "it did not answer in time",
	reset: "the connection was closed before an answer came",
	socket: "the socket file does not exist, or you may not use it",
	tls_untrusted: "its certificate is not signed by a trusted authority",
	tls_expired: "its certificate is not valid today",
	tls_hostname: "its certificate is for another name",
	tls_protocol: "it does not speak TLS there",
	not_http: "the answer is not HTTP",
	network: "the connection failed"
};
const REASONS = {
	ECONNREFUSED: "refused",
	ENOTFOUND: "dns",
	EAI_AGAIN: "dns",
	ETIMEDOUT: "timeout",
	UND_ERR_CONNECT_TIMEOUT: "timeout",
	UND_ERR_HEADERS_TIMEOUT: "timeout",
	UND_ERR_BODY_TIMEOUT: "timeout",
	TimeoutError: "timeout",
	ECONNRESET: "reset",
	EPIPE: "reset",
	UND_ERR_SOCKET: "reset",
	ENOENT: "socket",
	EACCES: "socket",
	ENOTSOCK: "socket",
	DEPTH_ZERO_SELF_SIGNED_CERT: "tls_untrusted",
	SELF_SIGNED_CERT_IN_CHAIN: "tls_untrusted",
	UNABLE_TO_VERIFY_LEAF_SIGNATURE: "tls_untrusted",
	UNABLE_TO_GET_ISSUER_CERT: "tls_untrusted",
	UNABLE_TO_GET_ISSUER_CERT_LOCALLY: "tls_untrusted",
	CERT_UNTRUSTED: "tls_untrusted",
	CERT_HAS_EXPIRED: "tls_expired",
	CERT_NOT_YET_VALID: "tls_expired",
	ERR_TLS_CERT_ALTNAME_INVALID: "tls_hostname",
	EPROTO: "tls_protocol"
};
function reasonOf(cause) {
	for (const code of codesOf(cause)) {
		const known = REASONS[code];
		if (known !== void 0) return known;
		if (code.startsWith("HPE_")) return "not_http";
		if (code.startsWith("ERR_SSL_")) return "tls_protocol";
		if (code.startsWith("ERR_TLS_") || code.startsWith("CERT_")) return "tls_untrusted";
	}
	return "network";
}
function codesOf(cause, depth = 0) {
	if (!(cause instanceof Error) || depth > 4) return [];
	const { code, errors } = cause;
	const inner = Array.isArray(errors) ? errors.flatMap((one) => codesOf(one, depth + 1)) : [];
	return [
		...typeof code === "string" ? [code] : [],
		cause.name,
		...inner,
		...codesOf(cause.cause, depth + 1)
	];
}
var UnreachableError = class extends Error {
	name = "UnreachableError";
	server;
	reason;
	mayHaveArrived;
	constructor(server, cause, reason = reasonOf(cause)) {
		super(`Cannot reach ${server}: ${MESSAGES[reason]}.`, { cause });
		this.server = server;
		this.reason = reason;
		this.mayHaveArrived = [
			"timeout",
			"reset",
			"not_http",
			"network"
		].includes(reason);
	}
};
// src/domain/stopwatch.ts
function stopwatch({ now, monotonic }, agoMs = 0) {
	const wall = now();
	const start = monotonic();
	return () => agoMs + Math.max(now() - wall, monotonic() - start);
}
// src/domain/formats/shell-word.ts
function shellQuote(text) {
	return `'${text.replaceAll("'", `'\\''`)}'`;
}
function shellWord(text) {
	return /^[\w.,:/@%+=-]+$/.test(text) ? text : shellQuote(text);
}
// src/cli/frame/surroundings.ts
var Interrupted = class extends Error {
	name = "Interrupted";
	exitCode;
	constructor(signalNumber) {
		super("interrupted");
		this.exitCode = 128 + signalNumber;
	}
};
// src/cli/frame/failure.ts
const EXIT = {
	done: 0,
	failed: 1,
	usage: 2,
	unreachable: 3,
	unauthenticated: 4,
	refused: 5
};
var CliError = class extends Error {
	name = "CliError";
	code;
	exitCode;
	hint;
	constructor(code, message, options = {}) {
		super(message, options.cause === void 0 ? void 0 : { cause: options.cause });
		this.code = code;
		this.exitCode = options.exit ?? EXIT.failed;
		this.hint = options.hint;
	}
};
const CHECK_ADDRESS = "Check the address in --server, MAYFLY_SERVER or the profile.";
const EXIT_PIPE = 141;
function failureOf(error) {
	if (error instanceof CliError) return error;
	if (isNamed(error, "UnreachableError")) return unreachable(error);
	if (isNamed(error, "MayflyError")) return refused(error);
	if (error instanceof Interrupted) return silent(error.exitCode);
	if (error instanceof Error && error.code === "EPIPE") return silent(EXIT_PIPE);
	return unforeseen(error);
}
const silent = (exitCode) => ({
	code: "interrupted",
	message: "",
	hint: void 0,
	exitCode
});
function isNamed(error, name) {
	return error instanceof Error && error.name === name;
}
const UNREACHABLE_HINTS = {
	refused: "Start it with `mayfly server`, or give its address with --server or MAYFLY_SERVER.",
	dns: "Check the name in --server, MAYFLY_SERVER or the profile.",
	timeout: "Check the network and the address, then try again.",
	reset: "Check that the address and its scheme (http or https) are right, then try again.",
	socket: "Check the path, and that you run as the user of the server.",
	tls_untrusted: "Give the certificate of its authority with --ca FILE or MAYFLY_CA_FILE.",
	tls_expired: "Renew the certificate of the server, or correct the clock of this machine.",
	tls_hostname: "Use the name in the certificate.",
	tls_protocol: "Try http:// instead of https://, or another port.",
	not_http: "Check the address and its port.",
	network: "Check the network and the address, then try again."
};
function unreachable(error) {
	const { message, reason, server } = error;
	return {
		code: `unreachable_${reason}`,
		message,
		hint: server.endsWith(" (HTTPS_PROXY is set)") && !reason.startsWith("tls_") ? "Check HTTPS_PROXY; NO_PROXY names the hosts to reach without a proxy." : UNREACHABLE_HINTS[reason],
		exitCode: EXIT.unreachable
	};
}
function refused(error) {
	const { code, message, requestId } = error;
	const hint = hintOf(error);
	return {
		code,
		message: code === "internal_error" && requestId !== void 0 ? `${message} (${requestId})` : withoutAdvice(message, hint),
		hint,
		exitCode: exitOf(error)
	};
}
function withoutAdvice(message, hint) {
	if (hint === void 0) return message;
	return message.replace(/; (?:try again(?: later)?|wait as long as Retry-After says)\.$|: send "Authorization: Bearer <token>"\.$/, ".");
}
const REFUSED$1 = { exit: EXIT.refused };
const LOGIN = {
	exit: EXIT.unauthenticated,
	hint: "The login is wrong, expired or deleted. Run `mayfly login` or `mayfly enroll`."
};
const SCOPES = {
	exit: EXIT.refused,
	hint: "List your scopes with `mayfly status`; request more with `mayfly request SCOPE --reason …`."
};
const PASSING = { hint: "Try again. If the problem persists, tell the administrator." };
const MEANINGS = {
	unauthorized: LOGIN,
	invalid_client: LOGIN,
	invalid_token: LOGIN,
	not_allowed: REFUSED$1,
	confirmation_required: {
		exit: EXIT.unauthenticated,
		hint: "It counts as confirmed for 15 minutes after a login: run `mayfly login --browser` or `mayfly login --device`, then the command again."
	},
	scope_not_allowed: SCOPES,
	insufficient_scope: REFUSED$1,
	ttl_exceeded: {
		exit: EXIT.refused,
		hint: "`mayfly backends` lists the max ttl of each backend."
	},
	invalid_scope: SCOPES,
	invalid_target: REFUSED$1,
	invalid_request: { exit: EXIT.usage },
	unexpected_reply: {
		exit: EXIT.unreachable,
		hint: CHECK_ADDRESS
	},
	backend_not_found: { hint: "List them with `mayfly backends`." },
	credential_not_found: { hint: "List them with `mayfly credentials ls`." },
	store_unavailable: PASSING,
	audit_unavailable: PASSING,
	backend_unavailable: PASSING,
	backend_timeout: PASSING
};
function exitOf({ code, status }) {
	return MEANINGS[code]?.exit ?? (status === 401 ? EXIT.unauthenticated : EXIT.failed);
}
const SCOPE = /^[A-Za-z0-9._/@+:*-]{1,256}$/;
function needs(message, scope) {
	if (scope === void 0 || !SCOPE.test(scope)) return void 0;
	return `${message.includes(scope) ? "" : `It needs ${scope}. `}Request it with \`mayfly request ${shellWord(scope)}\`.`;
}
function hintOf({ code, message, scope, retryAfterSeconds }) {
	if (code === "insufficient_scope") return needs(message, scope);
	if (code !== "rate_limited") return MEANINGS[code]?.hint;
	return retryAfterSeconds === void 0 ? "Try again later." : `Try again in ${retryAfterSeconds} s.`;
}
const SYSTEM_REASONS = {
	ENOSPC: "the disk is full",
	EACCES: "permission denied",
	EPERM: "permission denied",
	EROFS: "the file system is read-only",
	ENOENT: "no such file or directory",
	EISDIR: "it is a directory",
	ENOTDIR: "part of the path is not a directory",
	EDQUOT: "the quota is used up"
};
function systemReason(error) {
	const { code } = error;
	return typeof code === "string" ? SYSTEM_REASONS[code] : void 0;
}
function unforeseen(error) {
	const { code, path, syscall } = error;
	const words = systemReason(error);
	if (words !== void 0) return {
		code: code ?? "failed",
		message: `${path ?? (syscall === "write" ? "the output" : syscall)}: ${words}.`,
		hint: void 0,
		exitCode: EXIT.failed
	};
	return {
		code: "failed",
		message: (error instanceof Error ? error.message : String(error)).split("\n")[0] ?? "",
		hint: void 0,
		exitCode: EXIT.failed
	};
}
// src/cli/run/heartbeat.ts
const RETRY_SHARE = .45;
const LONGEST_RETRY_MS = 1e4;
const TIMEOUT_SHARE = .9;
const DEAD_AFTER = 4;
const LOOK_MS$1 = 2e4;
const ASK_WHY_MS = 3e3;
async function keepBeating(options, signal) {
	const { runs, id, intervalMs, now, note } = options;
	const clocks = {
		now,
		monotonic: () => performance.now()
	};
	const retryMs = Math.min(intervalMs * RETRY_SHARE, LONGEST_RETRY_MS);
	let sinceGood = stopwatch(clocks);
	let isReported = false;
	for (let since = sinceGood, wait = intervalMs;;) {
		for (let left = wait - since(); left > 0; left = wait - since()) await pause(Math.min(left, LOOK_MS$1), signal);
		since = stopwatch(clocks);
		try {
			await within$1(retryMs * TIMEOUT_SHARE, signal, (either) => runs.beat(id, { signal: either }));
			options.beaten?.(since());
			if (isReported) note(`mayfly: the server takes the heartbeats of ${id} again.`);
			isReported = false;
			sinceGood = since;
			wait = intervalMs;
		} catch (error) {
			signal.throwIfAborted();
			const isRefused = error instanceof MayflyError && [401, 403].includes(error.status);
			const isLate = sinceGood() > DEAD_AFTER * intervalMs;
			const end = isRefused && isLate ? REFUSED : await endBy(error, options, signal);
			if (end !== void 0) return end;
			if (isLate && !isReported) note(`mayfly: ${unheard(id, error)}`);
			isReported ||= isLate;
			wait = isRefused ? intervalMs : retryMs;
		}
	}
}
const REFUSED = {
	reason: "refused",
	endedBy: null
};
function within$1(ms, signal, work) {
	return unlessAborted(withDeadline(ms, (deadline) => work(AbortSignal.any([signal, deadline]))), signal);
}
async function endBy(error, { runs, id }, signal) {
	if (!isGone(error)) return void 0;
	try {
		const { reason, ended_by, state } = await within$1(ASK_WHY_MS, signal, (either) => runs.show(id, { signal: either }));
		return state === "running" ? void 0 : {
			reason,
			endedBy: ended_by
		};
	} catch {
		signal.throwIfAborted();
		if (error.code === "not_found" && !await knowsRuns(runs, signal)) return void 0;
		return {
			reason: null,
			endedBy: null
		};
	}
}
async function knowsRuns(runs, signal) {
	try {
		await within$1(ASK_WHY_MS, signal, (either) => runs.list({}, {
			limit: 1,
			signal: either
		}).next());
		return true;
	} catch {
		return false;
	}
}
function unheard(id, error) {
	return `the server has heard no heartbeat of ${id} for so long that its credentials may have ended. ${error instanceof DeadlineError ? "It does not answer in time." : failureOf(error).message} Retrying.`;
}
// src/client/events.ts
const SILENT_MS$1 = 45e3;
const FIRST_WAIT_MS$1 = 500;
const LONGEST_WAIT_MS$1 = 3e4;
const MOST_CHARACTERS = 1 << 20;
const REMEMBERED = 4096;
async function* followEvents(open, { cursor, signal } = {}) {
	const seen = new Set();
	let last = cursor;
	let failures = 0;
	for (;;) {
		signal?.throwIfAborted();
		const ending = new AbortController();
		const stop = () => ending.abort(signal?.reason);
		signal?.addEventListener("abort", stop, { once: true });
		try {
			let isOpen = false;
			for await (const { id, event, data } of readEvents(await open(last, ending.signal))) {
				failures = 0;
				if (id !== "") last = id;
				if (event === "reset") yield {
					kind: "reset",
					id
				};
				else if (data !== "") {
					const entry = JSON.parse(data);
					if (remember(seen, entry.id)) yield {
						kind: "entry",
						id,
						entry
					};
				} else if (!isOpen && id !== "") {
					isOpen = true;
					yield {
						kind: "open",
						id
					};
				}
			}
		} catch (error) {
			signal?.throwIfAborted();
			if (isFinal(error)) throw error;
		} finally {
			signal?.removeEventListener("abort", stop);
			ending.abort();
		}
		const wait = Math.min(LONGEST_WAIT_MS$1, FIRST_WAIT_MS$1 * 2 ** Math.min(failures, 10));
		failures += 1;
		await pause(wait * (.5 + Math.random() / 2), signal);
	}
}
function isFinal(error) {
	return error instanceof MayflyError && error.status >= 400 && error.status < 500 && error.status !== 429;
}
function remember(seen, id) {
	if (seen.has(id)) return false;
	seen.add(id);
	if (seen.size > REMEMBERED) for (const oldest of seen) return seen.delete(oldest);
	return true;
}
async function* readEvents(stream, silentMs = SILENT_MS$1) {
	let id = "";
	let event = "";
	let data = [];
	let isMeant = false;
	for await (const line of linesOf(stream, silentMs)) {
		if (line === "") {
			if (isMeant) yield {
				id,
				event: event === "" ? "message" : event,
				data: data.join("\n")
			};
			event = "";
			data = [];
			isMeant = false;
			continue;
		}
		const [, name, value = ""] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? [];
		if (name === "id" && !value.includes("\0")) id = value;
		else if (name === "event") event = value;
		else if (name === "data") data.push(value);
		else continue;
		isMeant = true;
	}
}
async function* linesOf(stream, silentMs) {
	const reader = stream.getReader();
	const decoder = new TextDecoder();
	let rest = "";
	try {
		for (;;) {
			const { value } = await within(silentMs, reader.read());
			if (value === void 0) return;
			rest += decoder.decode(value, { stream: true });
			if (rest.length > MOST_CHARACTERS) throw unexpected$2("An event of the stream is too long.");
			const lines = rest.split(/\r\n|\n|\r(?!$)/);
			rest = lines.pop() ?? "";
			yield* lines;
		}
	} finally {
		await reader.cancel().catch(() => void 0);
	}
}
async function within(ms, work) {
	let timer;
	const late = new Promise((_, reject) => {
		timer = setTimeout(() => reject(unexpected$2("The stream has fallen silent.")), ms);
	});
	try {
		return await Promise.race([work, late]);
	} finally {
		clearTimeout(timer);
	}
}
function unexpected$2(message) {
	return new MayflyError({
		code: "unexpected_reply",
		status: 0,
		message
	});
}
// src/client/transport.ts
const MAX_REPLY_BYTES = 33554432;
function replyTooLarge(status, maxBytes = MAX_REPLY_BYTES) {
	const MiB = 1048576;
	return new MayflyError({
		code: "unexpected_reply",
		status,
		message: `The answer is larger than ${maxBytes < MiB ? `${maxBytes / 1024} KiB` : `${maxBytes / MiB} MiB`}.`
	});
}
const fetchStream = async (request) => {
	const ending = new AbortController();
	const stop = () => ending.abort(request.signal?.reason);
	if (request.signal?.aborted === true) stop();
	request.signal?.addEventListener("abort", stop, { once: true });
	const timer = setTimeout(() => ending.abort(new DOMException("timeout", "TimeoutError")), request.timeoutMs);
	try {
		const { status, headers, body } = await fetch(request.url, initOf(request, ending.signal));
		const empty = () => new ReadableStream({ start: (controller) => controller.close() });
		return {
			status,
			header: (name) => headers.get(name) ?? void 0,
			body: body ?? empty()
		};
	} catch (cause) {
		request.signal?.throwIfAborted();
		throw new UnreachableError(new URL(request.url).origin, cause);
	} finally {
		clearTimeout(timer);
	}
};
function initOf({ method, headers, body }, signal) {
	return {
		method,
		headers: { ...headers },
		redirect: "manual",
		signal,
		...body === void 0 ? {} : { body }
	};
}
const fetchTransport = async (request) => {
	const timeout = AbortSignal.timeout(request.timeoutMs);
	try {
		const signal = request.signal === void 0 ? timeout : AbortSignal.any([request.signal, timeout]);
		const response = await fetch(request.url, initOf(request, signal));
		const text = await readText(response);
		return {
			status: response.status,
			header: (name) => response.headers.get(name) ?? void 0,
			text
		};
	} catch (cause) {
		if (cause instanceof MayflyError) throw cause;
		request.signal?.throwIfAborted();
		throw new UnreachableError(new URL(request.url).origin, cause);
	}
};
async function readText({ body, status }) {
	const reader = body?.getReader();
	const decoder = new TextDecoder();
	let text = "";
	let size = 0;
	for (let read = await reader?.read(); read?.value !== void 0; read = await reader?.read()) {
		size += read.value.length;
		if (size > 33554432) {
			await reader?.cancel();
			throw replyTooLarge(status);
		}
		text += decoder.decode(read.value, { stream: true });
	}
	return text + decoder.decode();
}
// src/client/send.ts
const FIRST_WAIT_MS = 200;
const LONGEST_WAIT_MS = 1e4;
const CHECK_MS = 3e4;
const LONGEST_ANSWER_MS = 66e4;
function pathPart(part) {
	if (part !== "" && part !== "." && part !== "..") return encodeURIComponent(part);
	throw new MayflyError({
		code: "invalid_request",
		status: 0,
		message: "A name or id is empty or not valid."
	});
}
async function send(sender, call, authorization) {
	const signal = joined(sender.signal, call.signal);
	const always = (call.retry ?? (call.method === "POST" || call.method === "PATCH" ? "unsent" : "always")) === "always";
	const retries = call.retry === "never" ? 0 : sender.retries;
	let lost;
	for (let attempt = 0;; attempt += 1) {
		signal?.throwIfAborted();
		let wait;
		try {
			const reply = await sendOnce(sender, call, authorization, signal);
			if (reply.status >= 200 && reply.status < 300) return {
				...reply,
				body: parse(reply)
			};
			throw errorOf(reply);
		} catch (error) {
			if (error instanceof UnreachableError && error.mayHaveArrived) lost = error;
			wait = attempt < retries ? waitBefore(error, attempt, always) : void 0;
			if (wait === void 0) throw error instanceof UnreachableError ? lost ?? error : error;
		}
		await pause(wait, signal);
	}
}
async function openStream(sender, call, authorization) {
	const request = await requestOf(sender, call, authorization, joined(sender.signal, call.signal));
	const reply = await sender.streams({
		...request,
		timeoutMs: sender.timeoutMs ?? CHECK_MS
	});
	if (reply.status >= 200 && reply.status < 300) return reply;
	throw errorOf({
		...reply,
		text: await readText(reply)
	});
}
async function sendOnce(sender, call, authorization, signal) {
	const request = await requestOf(sender, call, authorization, signal);
	const { timeoutMs } = sender;
	return timeoutMs === void 0 ? waitFor(sender, request) : sender.transport({
		...request,
		timeoutMs
	});
}
async function requestOf(sender, call, authorization, signal) {
	const form = call.form === void 0 ? void 0 : new URLSearchParams(await call.form()).toString();
	const json = call.body === void 0 ? void 0 : JSON.stringify(call.body);
	const contentType = form === void 0 ? "application/json" : "application/x-www-form-urlencoded";
	const body = form ?? json;
	return {
		method: call.method,
		url: sender.server + call.path + queryText(call.query),
		headers: {
			accept: "application/json",
			"user-agent": sender.userAgent,
			...authorization === void 0 ? {} : { authorization },
			...body === void 0 ? {} : { "content-type": contentType },
			...call.headers
		},
		body,
		signal
	};
}
async function waitFor({ server, transport }, request) {
	const silent = new AbortController();
	const check = setInterval(() => {
		transport({
			method: "GET",
			url: `${server}/health`,
			headers: {},
			timeoutMs: CHECK_MS
		}).catch((error) => silent.abort(new UnreachableError(server, error, "timeout")));
	}, CHECK_MS);
	try {
		const signal = joined(request.signal, silent.signal);
		return await transport({
			...request,
			signal,
			timeoutMs: LONGEST_ANSWER_MS
		});
	} finally {
		clearInterval(check);
	}
}
function queryText(query) {
	const search = new URLSearchParams();
	for (const [name, value] of Object.entries(query ?? {})) if (value !== void 0) for (const one of [value].flat()) search.append(name, String(one));
	const text = search.toString();
	return text === "" ? "" : `?${text}`;
}
function waitBefore(error, attempt, always) {
	const backoff = Math.random() * FIRST_WAIT_MS * 2 ** (attempt + 1);
	if (error instanceof UnreachableError) {
		if (error.reason === "refused") return backoff;
		return always && error.mayHaveArrived && error.reason !== "timeout" ? backoff : void 0;
	}
	if (!(error instanceof MayflyError)) return void 0;
	const passing = error.status === 503 || error.status === 409 && error.retryAfterSeconds !== void 0;
	if (error.status !== 429 && !(passing && always)) return void 0;
	const asked = (error.retryAfterSeconds ?? 0) * 1e3;
	return asked > LONGEST_WAIT_MS ? void 0 : Math.max(asked, backoff);
}
function joined(one, other) {
	return one === void 0 || other === void 0 ? one ?? other : AbortSignal.any([one, other]);
}
function parse(reply) {
	if (reply.text === "") return void 0;
	try {
		return JSON.parse(reply.text);
	} catch {
		throw unexpected$1(reply);
	}
}
function unexpected$1(reply) {
	return new MayflyError({
		code: "unexpected_reply",
		status: reply.status,
		message: `The answer (status ${reply.status}) is not from a Mayfly server.`,
		requestId: reply.header("x-request-id"),
		retryAfterSeconds: retryAfterOf(reply)
	});
}
function errorOf(reply) {
	let body;
	try {
		body = JSON.parse(reply.text);
	} catch {
		return unexpected$1(reply);
	}
	const { error, error_description } = body ?? {};
	const code = typeof error === "string" ? error : error?.code;
	const message = typeof error === "string" ? error_description ?? error : error?.message;
	if (typeof code !== "string" || typeof message !== "string") return unexpected$1(reply);
	const reason = typeof error === "object" && typeof error.reason === "string" ? error.reason : void 0;
	return new MayflyError({
		code,
		status: reply.status,
		message,
		requestId: reply.header("x-request-id"),
		retryAfterSeconds: retryAfterOf(reply),
		scope: /scope="([^"]*)"/.exec(reply.header("www-authenticate") ?? "")?.[1],
		reason
	});
}
function retryAfterOf(reply) {
	const text = reply.header("retry-after");
	return text !== void 0 && /^\d{1,9}$/.test(text) ? Number(text) : void 0;
}
// src/client/paging.ts
const MAX_PAGES = 1e4;
const MAX_PAGE_ITEMS = 1e3;
function pages(authorizer, route, query, options, id) {
	return walk(authorizer, pathOf(route, id), query, options, (reply) => ({
		items: reply.body,
		cursor: nextCursor(reply.header("link"))
	}));
}
function entryPages(authorizer, query, options) {
	return walk(authorizer, pathOf("GET /api/v1/audit"), query, options, ({ body }) => ({
		items: body?.entries,
		cursor: body?.next_cursor ?? void 0
	}));
}
function pathOf(route, id) {
	const path = route.slice(4);
	return id === void 0 ? path : path.replace(/:\w+/, () => pathPart(id));
}
async function* walk(authorizer, path, query, { limit, signal }, read) {
	const cursors = new Set();
	let cursor;
	do {
		const page = read(await authorizer.call({
			method: "GET",
			path,
			query: {
				...query,
				limit,
				cursor
			},
			signal
		}));
		yield* listOf(page.items);
		cursor = page.cursor;
		if (cursor === void 0) return;
		if (cursors.has(cursor) || cursors.size >= MAX_PAGES) throw endless();
		cursors.add(cursor);
	} while (true);
}
function endless() {
	return new MayflyError({
		code: "unexpected_reply",
		status: 200,
		message: "The listing does not end."
	});
}
function nextCursor(link) {
	const target = /<([^>]*)>\s*;[^,]*rel="?next"?/.exec(link ?? "")?.[1];
	if (target === void 0) return void 0;
	return new URL(target, "http://localhost").searchParams.get("cursor") ?? void 0;
}
function listOf(value) {
	if (Array.isArray(value) && value.length <= MAX_PAGE_ITEMS) return value;
	throw new MayflyError({
		code: "unexpected_reply",
		status: 200,
		message: "The answer is not from a Mayfly server."
	});
}
// src/client/routes.ts
function requestThrough({ call }) {
	return async (route, { id, ...input }) => {
		const [method, path = ""] = route.split(" ");
		return (await call({
			method,
			path: id === void 0 ? path : path.replace(/:\w+/, () => pathPart(id)),
			...input
		})).body;
	};
}
// src/client/people.ts
function createPeople(authorizer) {
	const request = requestThrough(authorizer);
	return {
		me: (options = {}) => request("GET /v1/admin/me", options),
		operators: {
			list: (page = {}) => pages(authorizer, "GET /v1/admin/operators", {}, page),
			show: (id, options = {}) => request("GET /v1/admin/operators/:id", {
				id,
				...options
			}),
			invite: (body, options = {}) => request("POST /v1/admin/operators", {
				body,
				...options
			}),
			inviteAgain: (id, options = {}) => request("POST /v1/admin/operators/:id/invitation", {
				id,
				...options
			}),
			update: (id, body, options = {}) => request("PATCH /v1/admin/operators/:id", {
				id,
				body,
				...options
			}),
			delete: (id, options = {}) => request("DELETE /v1/admin/operators/:id", {
				id,
				...options
			}),
			endSessions: (id, options = {}) => request("DELETE /v1/admin/operators/:id/sessions", {
				id,
				...options
			})
		},
		sessions: {
			list: (filter = {}, page = {}) => pages(authorizer, "GET /v1/admin/sessions", filter, page),
			end: (id, options = {}) => request("DELETE /v1/admin/sessions/:id", {
				id,
				...options
			})
		},
		loginLink: (body = {}, options = {}) => request("POST /v1/admin/console/links", {
			body,
			...options
		})
	};
}
// src/client/run-events.ts
const SILENT_MS = 15e3;
async function* followRun(authorizer, id, { signal, silentMs = SILENT_MS } = {}) {
	const headers = { accept: "text/event-stream" };
	const path = `/v1/runs/${pathPart(id)}/events`;
	const { body } = await authorizer.stream({
		method: "GET",
		path,
		headers,
		signal
	});
	try {
		for await (const { event, data } of readEvents(body, silentMs)) {
			if (event === "alive") yield {
				kind: "alive",
				...JSON.parse(data)
			};
			if (event !== "state") continue;
			const state = JSON.parse(data);
			yield {
				kind: "state",
				...state
			};
			if (state.run.state === "ended") return;
		}
	} catch (error) {
		signal?.throwIfAborted();
		if (error instanceof MayflyError || error instanceof UnreachableError) throw error;
		throw unexpected("The stream of the run broke.", error);
	}
	throw unexpected("The stream of the run ended before the run.");
}
function unexpected(message, cause) {
	return Object.assign(new MayflyError({
		code: "unexpected_reply",
		status: 0,
		message
	}), { cause });
}
// src/client/runs.ts
function runCalls(authorizer) {
	const request = requestThrough(authorizer);
	return {
		start: (body = {}, options = {}) => request("POST /v1/runs", {
			body,
			retry: "always",
			...options
		}),
		beat: (id, options = {}) => request("POST /v1/runs/:id/heartbeat", {
			id,
			retry: "never",
			...options
		}),
		end: (id, options = {}) => {
			const { reason, ...rest } = options;
			return request("DELETE /v1/runs/:id", {
				id,
				query: { reason },
				...rest
			});
		},
		show: (id, options = {}) => request("GET /v1/runs/:id", {
			id,
			...options
		}),
		list: (filter = {}, page = {}) => pages(authorizer, "GET /v1/runs", filter, page),
		events: (id, options = {}) => followRun(authorizer, id, options),
		record: (id, body, options = {}) => request("POST /v1/runs/:id/requests", {
			id,
			body,
			retry: "always",
			...options
		}),
		requests: (id, filter = {}, page = {}) => pages(authorizer, "GET /v1/runs/:id/requests", filter, page, id)
	};
}
function anyRunCalls(authorizer) {
	const request = requestThrough(authorizer);
	return {
		end: (id, options = {}) => request("DELETE /v1/admin/runs/:id", {
			id,
			...options
		}),
		show: (id, options = {}) => request("GET /v1/admin/runs/:id", {
			id,
			...options
		}),
		list: (filter = {}, page = {}) => pages(authorizer, "GET /v1/admin/runs", filter, page),
		requests: (id, filter = {}, page = {}) => pages(authorizer, "GET /v1/admin/runs/:id/requests", filter, page, id)
	};
}
// src/client/admin.ts
function createAdmin(authorizer) {
	const request = requestThrough(authorizer);
	const list = (route, filter, page) => pages(authorizer, route, filter, page);
	return {
		...createPeople(authorizer),
		agents: {
			list: (page = {}) => list("GET /v1/admin/agents", {}, page),
			create: (body, options = {}) => request("POST /v1/admin/agents", {
				body,
				...options
			}),
			show: (name, options = {}) => request("GET /v1/admin/agents/:name", {
				id: name,
				...options
			}),
			update: (name, body, options = {}) => request("PATCH /v1/admin/agents/:name", {
				id: name,
				body,
				...options
			}),
			rotate: (name, body = {}, options = {}) => request("POST /v1/admin/agents/:name/rotate", {
				id: name,
				body,
				...options
			}),
			delete: (name, options = {}) => request("DELETE /v1/admin/agents/:name", {
				id: name,
				...options
			})
		},
		...createServer(authorizer),
		backends: createBackends(authorizer),
		kinds: (page = {}) => list("GET /v1/admin/kinds", {}, page),
		tokens: {
			list: (filter = {}, page = {}) => list("GET /v1/admin/tokens", filter, page),
			show: (id, options = {}) => request("GET /v1/admin/tokens/:id", {
				id,
				...options
			}),
			revoke: (id, options = {}) => request("DELETE /v1/admin/tokens/:id", {
				id,
				...options
			}),
			revokeAll: (body, options = {}) => request("POST /v1/admin/tokens/revoke", {
				body,
				...options
			})
		},
		runs: anyRunCalls(authorizer),
		audit: (filter = {}, page = {}) => list("GET /v1/admin/audit", filter, page),
		activity: (query = {}, options = {}) => request("GET /v1/admin/activity", {
			query,
			...options
		}),
		...createLive(authorizer),
		pending: {
			list: (filter = {}, page = {}) => list("GET /v1/admin/pending", filter, page),
			show: (id, options = {}) => request("GET /v1/admin/pending/:id", {
				id,
				...options
			}),
			approve: (id, body = {}, options = {}) => request("POST /v1/admin/pending/:id/approve", {
				id,
				body,
				...options
			}),
			reject: (id, body = {}, options = {}) => request("POST /v1/admin/pending/:id/reject", {
				id,
				body,
				...options
			})
		},
		policies: (page = {}) => list("GET /v1/admin/policies", {}, page),
		explainPolicy: (asked, options = {}) => {
			const query = {
				name: asked.name,
				scope: asked.scopes
			};
			return request("GET /v1/admin/policies/explain", {
				query,
				...options
			});
		}
	};
}
function createServer(authorizer) {
	const request = requestThrough(authorizer);
	return {
		notify: { test: (name, options = {}) => request("POST /v1/admin/notify/:name/test", {
			id: name,
			...options
		}) },
		plugins: {
			list: (page = {}) => pages(authorizer, "GET /v1/admin/plugins", {}, page),
			add: (body, options = {}) => request("POST /v1/admin/plugins", {
				body,
				...options
			}),
			remove: (name, options = {}) => request("DELETE /v1/admin/plugins/:name", {
				id: name,
				...options
			}),
			reloadAll: (options = {}) => request("POST /v1/admin/plugins/reload", options),
			reload: (name, options = {}) => request("POST /v1/admin/plugins/:name/reload", {
				id: name,
				...options
			})
		},
		settings: (options = {}) => request("GET /v1/admin/settings", options),
		nodes: (options = {}) => request("GET /v1/admin/nodes", options),
		reload: (options = {}) => request("POST /v1/admin/reload", options),
		keys: {
			list: (page = {}) => pages(authorizer, "GET /v1/admin/keys", {}, page),
			issuer: (options = {}) => request("GET /v1/admin/keys/issuer", options),
			rotate: (body = {}, options = {}) => request("POST /v1/admin/keys/rotate", {
				body,
				...options
			})
		},
		overview: (options = {}) => request("GET /v1/admin/overview", options)
	};
}
function createLive(authorizer) {
	const request = requestThrough(authorizer);
	return {
		events: ({ filter, ...options } = {}) => followEvents(async (last, signal) => {
			const headers = {
				accept: "text/event-stream",
				...last && { "last-event-id": last }
			};
			const call = {
				method: "GET",
				path: "/v1/admin/events",
				query: { ...filter },
				headers,
				signal
			};
			return (await authorizer.stream(call)).body;
		}, options),
		exportAudit: async (asked, options = {}) => {
			const { url } = await request("POST /v1/admin/audit/export", {
				body: asked,
				...options
			});
			const call = {
				method: "GET",
				path: "/v1/admin/audit/export",
				query: { ticket: new URL(url, "http://localhost").searchParams.get("ticket") },
				...options
			};
			return (await authorizer.stream(call)).body;
		}
	};
}
function createBackends(authorizer) {
	const request = requestThrough(authorizer);
	return {
		list: (page = {}) => pages(authorizer, "GET /v1/admin/backends", {}, page),
		create: (body, { signal, ...query } = {}) => request("POST /v1/admin/backends", {
			body,
			query,
			signal
		}),
		show: (name, options = {}) => request("GET /v1/admin/backends/:name", {
			id: name,
			...options
		}),
		update: (name, body, { signal, ...query } = {}) => request("PUT /v1/admin/backends/:name", {
			id: name,
			body,
			query,
			signal
		}),
		delete: (name, { signal, ...query } = {}) => request("DELETE /v1/admin/backends/:name", {
			id: name,
			query,
			signal
		}),
		check: (name, options = {}) => request("POST /v1/admin/backends/:name/check", {
			id: name,
			...options
		}),
		try: (name, body = {}, options = {}) => request("POST /v1/admin/backends/:name/try", {
			id: name,
			body,
			...options
		}),
		rotateRoot: (name, options = {}) => request("POST /v1/admin/backends/:name/rotate-root", {
			id: name,
			...options
		}),
		reconcile: (name, body = {}, options = {}) => request("POST /v1/admin/backends/:name/reconcile", {
			id: name,
			body,
			...options
		})
	};
}
// src/client/access-tokens.ts
const RENEW_MS = 3e4;
function accessTokenOf({ access_token: token, expires_in, scope }, askedAt, requests) {
	const lifeMs = expires_in * 1e3;
	const expiresAt = askedAt + lifeMs;
	return {
		token,
		expiresAt,
		renewAt: expiresAt - Math.min(RENEW_MS, lifeMs / 5),
		scope,
		requests
	};
}
var AccessTokens = class {
	#sender;
	#cache;
	#now;
	#logIn;
	#kept;
	#login;
	constructor(sender, cache, now, logIn) {
		this.#sender = sender;
		this.#cache = cache;
		this.#now = now;
		this.#logIn = logIn;
	}
	current(signal) {
		return this.#shared(void 0, signal);
	}
	replace(old, why, signal) {
		return this.#shared(this.#kept?.token === old.token ? why : void 0, signal);
	}
	async watch(request) {
		const known = await this.#cache?.load() ?? this.#kept;
		if (known !== void 0) await this.#keep({
			...known,
			requests: [...known.requests ?? [], request]
		});
	}
	async #shared(renew, signal) {
		if (this.#login === void 0) {
			const stop = new AbortController();
			this.#login = {
				access: this.#obtain(renew, stop.signal),
				stop,
				waiting: 0
			};
		}
		const login = this.#login;
		login.waiting += 1;
		try {
			return await unlessAborted(login.access, signal);
		} finally {
			login.waiting -= 1;
			if (login.waiting === 0) {
				if (this.#login === login) this.#login = void 0;
				login.stop.abort();
			}
		}
	}
	async #obtain(renew, signal) {
		this.#kept ??= await this.#cache?.load();
		const kept = this.#kept;
		if (renew === void 0 && kept !== void 0 && kept.renewAt > this.#now()) {
			const undecided = await this.#undecided(kept, signal);
			if (undecided?.length === kept.requests?.length) return {
				...kept,
				isKept: true
			};
			return this.#obtainNew(undecided, signal);
		}
		const requests = (await this.#cache?.load() ?? kept)?.requests;
		if (renew === "refused") await this.#cache?.save(void 0);
		return this.#obtainNew(requests, signal);
	}
	async #obtainNew(requests, signal) {
		const askedAt = this.#now();
		const answer = await this.#logIn(signal);
		return {
			...await this.#keep(accessTokenOf(answer, askedAt, requests)),
			isKept: false
		};
	}
	async #keep(token) {
		this.#kept = token;
		await this.#cache?.save(token);
		return token;
	}
	async #undecided({ token, requests }, signal) {
		if (requests === void 0) return void 0;
		try {
			const call = {
				method: "GET",
				path: "/v1/status",
				signal
			};
			const { pending_requests } = (await send(this.#sender, call, `Bearer ${token}`)).body;
			const undecided = requests.filter((id) => pending_requests.some((one) => one.id === id));
			return undecided.length === 0 ? void 0 : undecided;
		} catch (error) {
			if (error instanceof MayflyError) return requests;
			throw error;
		}
	}
};
// src/client/assertion.ts
const LIFETIME_SECONDS = 60;
async function signAssertion(jwk, claims) {
	return signCompact(jwk, {
		iss: claims.clientId,
		sub: claims.clientId,
		aud: claims.audience,
		exp: Math.floor(claims.nowMs / 1e3) + LIFETIME_SECONDS,
		jti: crypto.randomUUID()
	});
}
async function signCompact(jwk, claims) {
	const { alg, importAs, signAs } = algorithmOf(jwk);
	const { kty, crv, x, y, d } = jwk;
	const key = await crypto.subtle.importKey("jwk", {
		kty,
		crv,
		x,
		d,
		...y === void 0 ? {} : { y }
	}, importAs, false, ["sign"]);
	const input = `${encode(JSON.stringify({
		alg,
		typ: "JWT"
	}))}.${encode(JSON.stringify(claims))}`;
	const signature = await crypto.subtle.sign(signAs, key, new TextEncoder().encode(input));
	return `${input}.${base64url(new Uint8Array(signature))}`;
}
function algorithmOf({ kty, crv }) {
	if (kty === "OKP" && crv === "Ed25519") return {
		alg: "EdDSA",
		importAs: { name: "Ed25519" },
		signAs: { name: "Ed25519" }
	};
	if (kty === "EC" && crv === "P-256") return {
		alg: "ES256",
		importAs: {
			name: "ECDSA",
			namedCurve: "P-256"
		},
		signAs: {
			name: "ECDSA",
			hash: "SHA-256"
		}
	};
	throw new TypeError("The private key is neither Ed25519 nor P-256.");
}
function encode(text) {
	return base64url(new TextEncoder().encode(text));
}
function base64url(bytes) {
	return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}
// src/client/same-address.ts
const LOOPBACK = /^(?<scheme>https?:\/\/)(?:localhost|127\.0\.0\.1|\[::1\])(?![^:/])/i;
function isSameAddress(one, other) {
	return byName(one) === byName(other);
}
const byName = (url) => url.replace(/\/+$/, "").replace(LOOPBACK, "$<scheme>localhost");
// src/client/log-in.ts
const TOLERATED_SKEW_MS = 3e4;
async function logIn(sender, auth, now, request, options) {
	if (auth.kind === "bearer" || auth.kind === "none") throw new MayflyError({
		code: "invalid_client",
		status: 0,
		message: "The token endpoint needs a client secret, an enrolled key or an identity; a plain token is not enough."
	});
	const issuer = auth.kind === "private_key_jwt" ? auth.issuer ?? await askIssuer(sender, options) : "";
	const ask = async (clock) => {
		const form = async () => ({
			...await grantOf(auth, issuer, clock, options),
			...request.scopes === void 0 ? {} : { scope: request.scopes.join(" ") },
			...request.audience === void 0 ? {} : { audience: request.audience }
		});
		return (await send(sender, {
			method: "POST",
			path: "/oauth/token",
			form,
			retry: "always",
			...options
		})).body;
	};
	try {
		return await ask(now);
	} catch (error) {
		if (!(error instanceof MayflyError && error.code === "invalid_client") || auth.kind !== "private_key_jwt") throw error;
		const skewMs = await clockSkew(sender, now, options);
		if (Math.abs(skewMs) < TOLERATED_SKEW_MS) throw error;
		return ask(() => now() - skewMs);
	}
}
async function clockSkew(sender, now, { signal }) {
	const reply = await send(sender, {
		method: "GET",
		path: "/health",
		signal
	}).catch(() => void 0);
	const time = Date.parse(reply?.header("date") ?? "");
	return Number.isNaN(time) ? 0 : now() - time;
}
async function askIssuer(sender, options) {
	const { issuer } = (await send(sender, {
		method: "GET",
		path: "/.well-known/openid-configuration",
		...options
	})).body;
	if (isSameAddress(String(issuer), sender.server)) return issuer;
	throw new MayflyError({
		code: "unexpected_reply",
		status: 200,
		message: "The server announces an issuer that is not its address. If that is right, give the issuer to the client."
	});
}
async function grantOf(auth, issuer, now, options) {
	const grant_type = "client_credentials";
	switch (auth.kind) {
		case "client_secret": return {
			grant_type,
			client_id: auth.clientId,
			client_secret: auth.clientSecret
		};
		case "private_key_jwt": {
			const claims = {
				clientId: auth.clientId,
				audience: issuer,
				nowMs: now()
			};
			return {
				grant_type,
				client_id: auth.clientId,
				client_assertion_type: "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
				client_assertion: await signAssertion(auth.privateJwk, claims)
			};
		}
		case "identity": return {
			grant_type: "urn:ietf:params:oauth:grant-type:token-exchange",
			subject_token: await auth.token(options),
			subject_token_type: "urn:ietf:params:oauth:token-type:jwt"
		};
	}
}
// src/client/authorize.ts
function createAuthorizer(sender, auth, now, cache) {
	const requestToken = (request, options = {}) => logIn(sender, auth, now, request, options);
	if (auth.kind === "bearer" || auth.kind === "none") {
		const authorization = auth.kind === "none" ? void 0 : `Bearer ${headerToken(auth.token)}`;
		return {
			call: (call) => send(sender, call, authorization),
			stream: (call) => openStream(sender, call, authorization),
			watchRequest: async () => {},
			requestToken
		};
	}
	const tokens = new AccessTokens(sender, cache, now, (signal) => requestToken({}, { signal }));
	return {
		requestToken,
		watchRequest: (id) => tokens.watch(id),
		call: (call) => withLogin(tokens, call, (authorization) => send(sender, call, authorization)),
		stream: (call) => withLogin(tokens, call, (authorization) => openStream(sender, call, authorization))
	};
}
async function withLogin(tokens, call, sendWith) {
	const first = await tokens.current(call.signal);
	try {
		return await sendWith(`Bearer ${first.token}`);
	} catch (error) {
		if (isScopeRefusal(error)) {
			if (!first.isKept) throw error;
			const more = await tokens.replace(first, "scopes", call.signal).catch(() => {
				call.signal?.throwIfAborted();
				throw error;
			});
			if (more.scope === first.scope) throw error;
			return sendWith(`Bearer ${more.token}`);
		}
		if (!isLoginRefusal(error)) throw error;
		return sendWith(`Bearer ${(await tokens.replace(first, "refused", call.signal)).token}`);
	}
}
const isLoginRefusal = (error) => error instanceof MayflyError && error.status === 401;
const isScopeRefusal = (error) => error instanceof MayflyError && error.status === 403 && (error.code === "scope_not_allowed" || error.code === "insufficient_scope");
function headerToken(text) {
	const token = text.trim();
	if (/^[\x21-\x7e]+$/.test(token)) return token;
	throw new MayflyError({
		code: "unauthorized",
		status: 0,
		message: "The token is empty, or contains a space, a line break or a character that no token has."
	});
}
// src/client/new-key.ts
function newKey() {
	const random = () => Math.random().toString(36).slice(2);
	return `${Date.now().toString(36)}-${random()}${random()}`;
}
// src/client/client.ts
function createClient(options) {
	const sender = {
		server: addressOf(options.server),
		transport: options.transport ?? fetchTransport,
		streams: options.streams ?? fetchStream,
		userAgent: options.userAgent ?? "mayfly-client",
		retries: options.retries ?? 3,
		timeoutMs: options.timeoutMs,
		signal: options.signal
	};
	const authorizer = createAuthorizer(sender, options.auth, options.now ?? Date.now, options.tokens);
	return {
		server: sender.server,
		...credentialCalls(authorizer),
		...selfCalls(authorizer),
		...openCalls(sender),
		runs: runCalls(authorizer),
		audit: (filter = {}, page = {}) => entryPages(authorizer, filter, page),
		token: (request = {}, options = {}) => authorizer.requestToken(request, options),
		admin: createAdmin(authorizer),
		call: (call) => authorizer.call(call)
	};
}
function addressOf(server) {
	const url = new URL(server);
	if (!/^https?:$/.test(url.protocol) || url.search !== "" || url.hash !== "" || url.username + url.password !== "") throw new TypeError("The server must be an http or https address without user, query or fragment.");
	return url.href.replace(/\/+$/, "");
}
function credentialCalls(authorizer) {
	const request = requestThrough(authorizer);
	const issueOnce = (body, key, signal) => {
		return request("POST /api/v1/credentials", {
			body,
			headers: { "idempotency-key": key },
			retry: "always",
			signal
		});
	};
	return {
		issue: async (body, options = {}) => {
			const issued = await issueOnce(body, options.idempotencyKey ?? newKey(), options.signal);
			if (issued.token !== void 0 || options.idempotencyKey !== void 0) return issued;
			return issueOnce(body, newKey(), options.signal);
		},
		credential: (id, options = {}) => request("GET /api/v1/credentials/:id", {
			id,
			...options
		}),
		revoke: (id, options = {}) => request("DELETE /api/v1/credentials/:id", {
			id,
			...options
		}),
		active: (page = {}) => pages(authorizer, "GET /v1/active", {}, page),
		backends: async (options = {}) => (await request("GET /api/v1/backends", options)).backends,
		backend: (id, options = {}) => request("GET /api/v1/backends/:id", {
			id,
			...options
		})
	};
}
function selfCalls(authorizer) {
	const request = requestThrough(authorizer);
	return {
		status: (options = {}) => request("GET /v1/status", options),
		signingKey: ({ privateKey = false, signal } = {}) => {
			return request("GET /v1/signing-key", {
				query: {
					format: "git",
					private_key: privateKey
				},
				signal
			});
		},
		sign: (body, options = {}) => request("POST /v1/sign", {
			body,
			...options
		}),
		requestScopes: async (body, options = {}) => {
			const requested = await request("POST /v1/request", {
				body,
				...options
			});
			await authorizer.watchRequest(requested.id);
			return requested;
		},
		scopeRequest: (id, options = {}) => request("GET /v1/request/:id", {
			id,
			...options
		}),
		logOut: async (options = {}) => {
			await request("DELETE /v1/login", {
				retry: "unsent",
				...options
			});
		},
		deleteSelf: (options = {}) => request("DELETE /v1/self", {
			retry: "unsent",
			...options
		})
	};
}
function openCalls(sender) {
	const request = requestThrough({ call: (call) => send(sender, call) });
	const requestOnce = requestThrough({ call: (call) => send({
		...sender,
		retries: 0
	}, call) });
	return {
		enroll: (body, options = {}) => request("POST /v1/enroll", {
			body,
			...options
		}),
		enrollStatus: (id, proof, options = {}) => requestOnce("GET /v1/enroll/:id/status", {
			id,
			headers: { "enrollment-proof": proof },
			...options
		}),
		discovery: (options = {}) => request("GET /.well-known/openid-configuration", options),
		health: (options = {}) => request("GET /health", options),
		ready: (options = {}) => request("GET /readyz", options)
	};
}
// src/domain/formats/json.ts
function parseJson(text) {
	try {
		return JSON.parse(text);
	} catch {
		return;
	}
}
// src/domain/network/loopback.ts
function isLoopbackHost(hostname) {
	return /^(?:localhost|127\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[::1\])$/i.test(hostname);
}
process.env;
var ActionError = class extends Error {
	name = "ActionError";
};
// integrations/github-action/src/id-token.ts
const TRIES = 4;
const TIMEOUT_MS = 1e4;
const PAUSE_MS = 500;
async function requestIdToken(env, audience, signal) {
	const { ACTIONS_ID_TOKEN_REQUEST_URL: address = "", ACTIONS_ID_TOKEN_REQUEST_TOKEN: bearer = "" } = env;
	if (address === "" || bearer === "") throw new ActionError("This job may not ask GitHub for a token. Give it `permissions: { id-token: write }`. Workflows that a fork starts never get one.");
	const url = URL.canParse(address) ? new URL(address) : void 0;
	const isSafe = url?.protocol === "https:" || url?.protocol === "http:" && isLoopbackHost(url.hostname);
	if (url === void 0 || !isSafe) throw new ActionError("ACTIONS_ID_TOKEN_REQUEST_URL is not an https address.");
	url.searchParams.set("audience", audience);
	const headers = {
		authorization: `Bearer ${bearer}`,
		accept: "application/json"
	};
	const { status, text } = await ask(url.href, headers, signal);
	const { value } = status === 200 ? parseJson(text) ?? {} : {};
	if (typeof value === "string" && /^[\w-]+\.[\w-]+\.[\w-]+$/.test(value)) return value;
	throw new ActionError(`GitHub gave no token for the audience ${audience}: it answered with status ${status}.`);
}
async function ask(url, headers, signal) {
	for (let tried = 1;; tried += 1) {
		try {
			const reply = await fetchTransport({
				method: "GET",
				url,
				headers,
				signal,
				timeoutMs: TIMEOUT_MS
			});
			if (reply.status !== 429 && reply.status < 500 || tried === TRIES) return reply;
		} catch (error) {
			signal?.throwIfAborted();
			if (tried === TRIES) throw new ActionError("GitHub gave no token: it cannot be reached.", { cause: error });
		}
		await pause(PAUSE_MS * tried, signal);
	}
}
// integrations/github-action/src/session.ts
const FILE = "session.json";
function readSession(directory) {
	try {
		return parseJson(readFileSync(join(directory, FILE), "utf8"));
	} catch {
		return;
	}
}
function writeSession(directory, session) {
	const path = join(directory, FILE);
	writeFileSync(`${path}.new`, JSON.stringify(session), { mode: 384 });
	renameSync(`${path}.new`, path);
}
function clientOf(env, { server, audience }, tokens) {
	return createClient({
		server,
		auth: {
			kind: "identity",
			token: ({ signal }) => requestIdToken(env, audience, signal)
		},
		tokens,
		userAgent: "mayfly-github-action"
	});
}
function tokensIn(directory, { server }) {
	return {
		load: async () => readSession(directory)?.token,
		save: async (token) => {
			const session = readSession(directory);
			try {
				if (session === void 0) throw new Error("the session was claimed");
				writeSession(directory, {
					...session,
					token
				});
			} catch (error) {
				if (token !== void 0) await endLogin(server, token);
				throw error;
			}
			if (token !== void 0 && session?.token !== void 0) await endLogin(server, session.token);
		}
	};
}
async function endLogin(server, { token }) {
	await createClient({
		server,
		auth: {
			kind: "bearer",
			token
		},
		userAgent: "mayfly-github-action"
	}).logOut({ signal: AbortSignal.timeout(5e3) }).catch(() => {});
}
// integrations/github-action/src/beat.ts
const LOOK_MS = 2e3;
async function beat(directory, parent) {
	const session = readSession(directory);
	const { run, heartbeatMs } = session ?? {};
	if (session === void 0 || run === void 0 || heartbeatMs === void 0) return;
	const { runs } = clientOf(process.env, session, tokensIn(directory, session));
	const stop = new AbortController();
	const look = setInterval(() => {
		if (readSession(directory) === void 0 || !isAlive(parent)) stop.abort(new Error("the job is over"));
	}, LOOK_MS);
	await keepBeating({
		runs,
		id: run,
		intervalMs: heartbeatMs,
		now: Date.now,
		note: () => {}
	}, stop.signal).catch(() => {}).finally(() => clearInterval(look));
}
function isAlive(pid) {
	if (pid === void 0) return true;
	try {
		process.kill(pid, 0);
		return true;
	} catch (error) {
		return error.code !== "ESRCH";
	}
}
const [, , directory = "", parent] = process.argv;
await beat(directory, parent === void 0 ? void 0 : Number(parent));
export {};

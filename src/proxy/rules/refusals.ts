/**
 * Everything for which the proxy refuses a request, or fails it itself. `status` is that of the reply, the key is what the record
 * has as `reason`. A message names the next step, and repeats nothing of the request.
 */
const REFUSALS = {
  bad_framing: [
    400,
    'The request has headers that two programs could read in two ways. Send each of Content-Length and Transfer-Encoding once, and not both.',
  ],
  bad_host: [400, 'The request needs exactly one valid Host.'],
  wrong_host: [
    421,
    'Host names another authority than the one that the connection is for. Open a connection for each authority.',
  ],
  bad_target: [400, 'The target of the request is not a path, or names another authority than Host.'],
  bad_path: [
    400,
    'The path has a dot segment, a backslash, a control character, or an invalid escape. Send it in its plain form.',
  ],
  bad_method: [400, 'The method is not one that a proxy forwards. Methods are written in capitals.'],
  method_override: [
    400,
    'The request asks the upstream to read another method or path than it has. Send it with that method and path.',
  ],
  path_not_allowed: [
    403,
    'No rule of the backend allows this path. An administrator can allow it: mayfly backend update NAME --uses @file.json.',
  ],
  slash_not_allowed: [403, 'The path has %2F or //, which no rule of the backend allows here.'],
  method_not_allowed: [403, 'The rules of the backend allow this path, but not with this method.'],
  denied: [403, 'A rule of the backend denies this request.'],
  service_not_allowed: [403, 'The rules of the backend do not allow this service of AWS.'],
  bad_signature: [
    400,
    'The signature of the request is wrong, or is not AWS Signature Version 4. Sign with AWS4-HMAC-SHA256 and the placeholders.',
  ],
  misplaced: [403, 'A placeholder stands in a place of the request where its secret must not be sent.'],
  elsewhere: [403, 'A placeholder was sent to an authority that is not its own.'],
  two_credentials: [403, 'Placeholders of two credentials stand in one request. Send two requests.'],
  plain_http: [403, 'A secret is never put into plain HTTP. Use https.'],
  body_too_large: [413, 'The body is larger than the rules permit for a request with a secret in its body.'],
  bad_body: [400, 'The body has a placeholder, but is not a form or a JSON object with each name once.'],
  bad_encoding: [
    415,
    'The body has a Content-Encoding that the proxy cannot search for placeholders. Send it plain; to hosts of no backend, gzip, deflate, br and zstd are read, too.',
  ],
  unfit_secret: [502, 'The credential has no value that fits into this place of a request.'],
  others_refused: [403, 'No credential of this run is for this authority, and the proxy refuses all others.'],
  port_not_allowed: [403, 'Only port 443 of other authorities is reachable through the proxy.'],
  own_server: [403, 'Mayfly itself is not reachable through its proxy.'],
  address_not_allowed: [403, 'The authority has an address that the proxy never connects to.'],
  plain_others: [403, 'The proxy forwards plain HTTP only to local backends. Use https.'],
  no_login: [407, 'The proxy wants the login of the run. Use the address in HTTPS_PROXY unchanged.'],
  foreign_user: [403, 'Another user opened the connection.'],
  cross_site: [403, 'A browser sent the request for another site.'],
  wrong_sni: [421, 'The name in the TLS handshake is not the host of CONNECT.'],
  ended: [403, 'The credential was ended. This run gets no other of this backend.'],
  unsure: [503, 'Mayfly gives no sign of life, so the credential is not used. Try again later.'],
  unreachable: [502, 'The upstream cannot be reached.'],
  foreign_listener: [
    502,
    'Another account of this machine listens on the address of the upstream, so nothing was sent. If that account runs the upstream, an administrator can name it: "local_user" of the backend, or "accounts" of its use.',
  ],
  broken: [502, 'The upstream broke the connection or sent what cannot be read.'],
  too_slow: [504, 'The upstream sent nothing for too long.'],
  overloaded: [503, 'The proxy serves as many requests as it can. Try again later.'],
} as const satisfies Record<string, readonly [status: number, message: string]>

export type Reason = keyof typeof REFUSALS

export const REASONS = Object.keys(REFUSALS) as readonly Reason[]

export interface Refusal {
  readonly status: number
  /** `proxy_<reason>`. */
  readonly code: string
  readonly message: string
}

export function refusalOf(reason: Reason): Refusal {
  const [status, message] = REFUSALS[reason]
  return { status, code: `proxy_${reason}`, message }
}

/** The body of the reply, `application/json`. */
export function refusalBody(reason: Reason): string {
  const { code, message } = refusalOf(reason)
  return JSON.stringify({ error: { code, message } })
}

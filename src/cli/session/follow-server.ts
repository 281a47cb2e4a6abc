import { type PrivateJwk, signAssertion } from '../../client/assertion.ts'
import type { Auth } from '../../client/log-in.ts'
import { isSameAddress } from '../../client/same-address.ts'
import type { Transport, TransportReply, TransportRequest } from '../../client/transport.ts'
import { shellWord } from '../../domain/formats/shell-word.ts'
import type { Context } from '../frame/verb.ts'
import { keepLogin } from './keep-login.ts'
import { type ServerAddress, serverOf } from './server-address.ts'
import { isSignedBy, namesOf, readServer, type ServerSaysSo, tokenIn } from './server-keys.ts'
import type { Target } from './session.ts'

type KeyLogin = Extract<Auth, { kind: 'private_key_jwt' }>

interface Follower {
  readonly context: Context
  readonly target: Target
  readonly auth: KeyLogin
  /** To the address of the profile. */
  readonly transport: Transport
  readonly open: (target: Target) => Promise<Transport>
  /** What the profile remembers. */
  readonly known: { readonly issuer: string; readonly keys: readonly string[] }
}

/** Where an assertion for the new issuer may be sent. */
interface Place extends ServerSaysSo {
  readonly server: ServerAddress
  readonly transport: Transport
  /** It is not the address of the profile. */
  readonly isElsewhere: boolean
}

/**
 * Lets a login by an enrolled key follow a server whose issuer has changed (ADR 0049), which a refused login shows, or an
 * access token of another issuer. After a move, all requests go to the new address.
 */
export function followServer(follower: Follower): Transport {
  const { target, transport, known } = follower
  const { url } = target.server
  let isDue = true
  let place: Place | undefined
  const send: Transport = (request) =>
    place?.isElsewhere === true
      ? place.transport({ ...request, url: `${place.server.url}${request.url.slice(url.length)}` })
      : transport(request)
  return async (request) => {
    const reply = await send(request)
    if (!isDue || request.url !== `${url}/oauth/token` || !mayHaveChanged(reply, known.issuer)) return reply
    isDue = false
    const followed = await follow(follower, request, reply).catch(() => undefined)
    place = followed?.place
    return followed?.reply ?? reply
  }
}

function mayHaveChanged(reply: TransportReply, issuer: string): boolean {
  if (reply.status === 401) return true
  if (reply.status !== 200) return false
  const iss = tokenIn(reply)?.claims?.iss
  return iss !== undefined && iss !== issuer
}

/** Undefined: there is nothing to follow, or it may not be followed. */
async function follow(
  follower: Follower,
  request: TransportRequest,
  refused: TransportReply,
): Promise<{ place: Place; reply: TransportReply } | undefined> {
  const { context, target, transport, known } = follower
  const here = await readServer(context, target.server, transport)
  if (here?.issuer === undefined || here.issuer === known.issuer) return undefined
  // Another server answers here: watchServerKeys says so.
  if (!isKnown(here, known.keys)) return undefined
  // The new address cannot be reached, or is none.
  const place = await placeOf(follower, { ...here, issuer: here.issuer }).catch(() => undefined)
  if (place === undefined) return cannotFollow(context, target, here.issuer)
  const reply = await logInAt(follower, place, request, refused)
  if (reply.status !== 200) return cannotFollow(context, target, here.issuer)
  if (place.isElsewhere && !(await isSignedBy(reply, place, known.keys)))
    return cannotFollow(context, target, here.issuer)
  await remember(follower, place)
  context.out.note(
    place.isElsewhere
      ? `mayfly: the server at ${target.server.text} has moved to ${place.server.text}; your login follows it.`
      : `mayfly: the server at ${target.server.text} is ${here.issuer} now; your login follows it.`,
  )
  return { place, reply }
}

const isKnown = ({ keys }: ServerSaysSo, known: readonly string[]) =>
  namesOf(keys).some((name) => known.includes(name))

/**
 * An assertion for an issuer is good wherever that issuer is, so it is sent to an address that stands for it: the issuer's
 * own, one of this machine, whose listener is known, or one that a person has accepted for another issuer before.
 */
async function placeOf(
  { context, target, transport, open, known }: Follower,
  here: ServerSaysSo & { issuer: string },
): Promise<Place | undefined> {
  const { server } = target
  const isBound =
    server.isLocal || isSameAddress(here.issuer, server.url) || !isSameAddress(known.issuer, server.url)
  if (isBound) return { ...here, server, transport, isElsewhere: false }
  const there = serverOf(here.issuer, context.env)
  const elsewhere = await open({ ...target, server: there })
  const says = await readServer(context, there, elsewhere)
  if (says?.issuer !== here.issuer || !isKnown(says, known.keys)) return undefined
  return { ...says, server: there, transport: elsewhere, isElsewhere: true }
}

/** The same request with an assertion for the new issuer, by the clock of the server. */
async function logInAt(
  { context, auth }: Follower,
  { server, transport, issuer }: Place,
  request: TransportRequest,
  refused: TransportReply,
): Promise<TransportReply> {
  const served = Date.parse(refused.header('date') ?? '')
  const claims = {
    clientId: auth.clientId,
    audience: issuer ?? '',
    nowMs: Number.isNaN(served) ? context.now() : served,
  }
  const form = new URLSearchParams(request.body)
  form.set('client_assertion', await signAssertion(auth.privateJwk as PrivateJwk, claims))
  return transport({ ...request, url: `${server.url}/oauth/token`, body: form.toString() })
}

/** A login that cannot be stored now follows the server again the next time. */
async function remember({ context, target, auth }: Follower, place: Place): Promise<void> {
  const { clientId: client_id, privateJwk: private_jwk } = auth
  await keepLogin(context, {
    // By its name: another profile may be for the new address.
    target: { ...target, server: place.server, profileFrom: 'flag' },
    secret: { kind: 'private_key_jwt', client_id, private_jwk },
    agent: target.profile?.agent,
    issuer: place.issuer,
    serverKeys: namesOf(place.keys),
  }).catch(() => undefined)
}

function cannotFollow({ out }: Context, { server, profileName }: Target, issuer: string): undefined {
  out.note(
    `mayfly: warning: ${server.text} says that it is ${issuer} now, which could not be confirmed there. If an administrator says so, too, run \`mayfly login --move --server ${shellWord(issuer)} --profile ${profileName}\`.`,
  )
}

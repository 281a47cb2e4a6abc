import { X509Certificate } from 'node:crypto'
import { connect as connectSession } from 'node:http2'
import { connect } from 'node:tls'
import { Code, ConnectError } from '@connectrpc/connect'
import { BackendError, type Fault, unavailable } from '../../domain/backend-error.ts'
import { cleanMessage, type Hide } from '../text.ts'
import type { OwnCertificate } from './certificate.ts'
import type { Handshake } from './handshake.ts'
import { type UnaryTransport, unaryTransport } from './unary.ts'

const MAX_REPLY_BYTES = 256 * 1024
const LONGEST_DETAIL = 1_000
const NAME = 'https://localhost'

/** gRPC over the socket of a plugin. Both sides accept exactly the certificate that the other handed over when it started. */
export function connectTo({ path, certificate }: Handshake, own: OwnCertificate): UnaryTransport {
  const open = () =>
    connectSession(NAME, {
      settings: { enablePush: false },
      maxReservedRemoteStreams: 0,
      createConnection: () =>
        connect({
          path,
          cert: own.certificate,
          key: own.key,
          ca: new X509Certificate(certificate).toString(),
          // The authors of other languages need not make theirs an authority.
          allowPartialTrustChain: true,
          ALPNProtocols: ['h2'],
          servername: 'localhost',
          minVersion: 'TLSv1.2',
          checkServerIdentity: (_name, peer) =>
            peer.raw.equals(certificate) ? undefined : new Error('the plugin has another certificate'),
        }),
    })
  return unaryTransport(open, MAX_REPLY_BYTES)
}

const FAULTS: Readonly<Partial<Record<Code, Fault>>> = {
  [Code.Unavailable]: 'unavailable',
  [Code.DeadlineExceeded]: 'timeout',
  [Code.PermissionDenied]: 'denied',
  [Code.Unauthenticated]: 'denied',
  [Code.FailedPrecondition]: 'misconfigured',
  [Code.InvalidArgument]: 'unsupported',
}

/** What a failed call means. Only a status that the plugin itself sent can make a failure certain. */
export function callFault(error: unknown, name: string, hide: Hide, signal?: AbortSignal): BackendError {
  if (error instanceof BackendError) return error
  const failed = ConnectError.from(error)
  const detail = detailOf(failed, hide)
  const isSaid = failed.metadata.has('grpc-status')
  const fault = isSaid ? FAULTS[failed.code] : undefined
  if (fault !== undefined) {
    const message = cleanMessage(failed.rawMessage, hide) || `The plugin ${name} gave no reason.`
    return new BackendError(fault, message, { detail, login: failed.code === Code.Unauthenticated })
  }
  if (signal?.aborted === true || failed.code === Code.DeadlineExceeded) {
    return new BackendError('timeout', `The plugin ${name} did not answer in time.`, { detail })
  }
  const says = isSaid ? 'failed' : 'ended, or broke the protocol'
  return unavailable(`The plugin ${name} ${says}.`, { detail })
}

function detailOf(error: ConnectError, hide: Hide): string {
  const more = error.metadata.get('mayfly-detail') ?? ''
  // Ours first: the message is shown already, and may be as long as the plugin likes.
  return cleanMessage(`${Code[error.code]} ${more} ${error.rawMessage}`, hide, LONGEST_DETAIL)
}

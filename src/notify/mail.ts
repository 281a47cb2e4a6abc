import { isIP } from 'node:net'
import { unlessAborted } from '../domain/abort.ts'
import { NotTaken, type NotTakenReason, type Receiver } from '../domain/notice.ts'
import type { Secret } from '../domain/secret.ts'
import { resolveChecked } from '../egress/address.ts'
import { notReached, type Ways } from './post.ts'

export interface MailSettings {
  readonly name: string
  readonly host: string
  readonly port: number
  /** `required`: STARTTLS; `implicit`: TLS from the start; `none`: only to a local server that gets no password. */
  readonly tls: 'required' | 'implicit' | 'none'
  readonly login: { readonly user: string; readonly password: Secret } | undefined
  readonly from: string
  readonly to: readonly string[]
  readonly local: boolean
}

const TIMEOUT_MS = 10_000

/** Sends mail by SMTP, to a server at a checked address. */
export function openMail(settings: MailSettings, ways: Ways): Receiver {
  const { name, host, port, tls, login, from, to, local } = settings
  return {
    name,
    async send({ id, title, lines, at }, signal) {
      let address: string
      try {
        address = await resolveChecked(host, { local, lookup: ways.lookup })
      } catch (error) {
        throw notReached(error)
      }
      const { createTransport } = await import('nodemailer')
      const transport = createTransport({
        host: address,
        port,
        secure: tls === 'implicit',
        requireTLS: tls === 'required',
        ignoreTLS: tls === 'none',
        // The certificate has the name that was configured.
        tls: isIP(host) === 0 ? { servername: host } : {},
        ...(login === undefined ? {} : { auth: { user: login.user, pass: login.password.reveal() } }),
        connectionTimeout: TIMEOUT_MS,
        greetingTimeout: TIMEOUT_MS,
        socketTimeout: TIMEOUT_MS,
        disableFileAccess: true,
        disableUrlAccess: true,
      })
      const stop = () => transport.close()
      signal.addEventListener('abort', stop, { once: true })
      try {
        await unlessAborted(
          transport.sendMail({
            from,
            to: [...to],
            subject: `[Mayfly] ${title}`,
            text: `${[title, ...lines].join('\n\n')}\n\n-- \n${ways.issuer}\n`,
            date: new Date(at),
            messageId: `<${id}@${new URL(ways.issuer).hostname}>`,
            // RFC 3834: no out-of-office reply.
            headers: { 'Auto-Submitted': 'auto-generated' },
          }),
          signal,
        )
      } catch (error) {
        throw notSent(error, signal)
      } finally {
        signal.removeEventListener('abort', stop)
        transport.close()
      }
    },
  }
}

/** By the codes of nodemailer (https://nodemailer.com/errors). */
function notSent(error: unknown, signal: AbortSignal): NotTaken {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  const detail = `${code}: ${error instanceof Error ? error.message : 'unknown'}`
  return new NotTaken(signal.aborted ? 'timeout' : reasonOf(code, detail), detail, { cause: error })
}

function reasonOf(code: string, detail: string): NotTakenReason {
  switch (code) {
    case 'ETIMEDOUT':
      return 'timeout'
    case 'EAUTH':
    case 'EENVELOPE':
    case 'EMESSAGE':
      return 'refused'
    case 'ETLS':
      return 'misconfigured'
    default:
      // It gives a certificate that is not trusted, or of another name, the code of every other failure of a socket.
      return /certificate/i.test(detail) ? 'misconfigured' : 'unreachable'
  }
}

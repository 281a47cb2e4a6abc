import { plainText } from './formats/plain-text.ts'

/** What receivers of notifications are told of. Receivers see these names. */
export type NoticeType =
  | 'request.waiting'
  | 'credential.stuck'
  | 'backend.down'
  | 'backend.up'
  | 'backend.root_aged'
  | 'certificate.expiring'
  | 'notification.dropped'
  | 'placeholder.misused'
  | 'test'

/** One message. Its texts hold no control characters, and nothing secret. */
export interface Notice {
  /** The same when it is sent again with the same content, so that a receiver can tell. */
  readonly id: string
  readonly type: NoticeType
  /** Epoch ms of the newest entry that it is about. */
  readonly at: number
  /** One line. */
  readonly title: string
  readonly lines: readonly string[]
  /** The same for programs. */
  readonly data: Readonly<Record<string, unknown>>
}

/** Why a receiver did not take a message. */
export type NotTakenReason = 'timeout' | 'unreachable' | 'refused' | 'misconfigured'

export class NotTaken extends Error {
  override readonly name = 'NotTaken'
  readonly reason: NotTakenReason

  /** `detail` is for the log, and may have text of the receiver. */
  constructor(reason: NotTakenReason, detail: string, options?: ErrorOptions) {
    super(detail, options)
    this.reason = reason
  }
}

/** Where messages go. */
export interface Receiver {
  readonly name: string
  /** Resolves when the receiver has taken it. Throws `NotTaken`. */
  send(notice: Notice, signal: AbortSignal): Promise<void>
}

/** Most things that a message names one by one. */
export const MOST_NAMED = 20
const LONGEST = 200

/** Text from outside, such as a reason: one line, without what steers or hides, and not long. */
export const shown = (text: string) => plainText(text, LONGEST)

/** `a, b and 3 more`. */
export function namesOf(all: readonly string[], most = 5): string {
  const unique = [...new Set(all)]
  const named = unique.slice(0, most).map(shown).join(', ')
  return unique.length > most ? `${named} and ${unique.length - most} more` : named
}

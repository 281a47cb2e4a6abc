import type { Receiver } from '../domain/notice.ts'
import { type MailSettings, openMail } from './mail.ts'
import type { Ways } from './post.ts'
import { openSlack, type SlackSettings } from './slack.ts'
import { openWebhook, type WebhookSettings } from './webhook.ts'

/** One entry of the setting `notify`, its secrets read. */
export type ReceiverSettings =
  | ({ readonly kind: 'webhook' } & WebhookSettings)
  | ({ readonly kind: 'smtp' } & MailSettings)
  | ({ readonly kind: 'slack' } & SlackSettings)

/** Connects to nobody yet. */
export function openReceivers(all: readonly ReceiverSettings[], ways: Ways): Receiver[] {
  return all.map((settings) => {
    switch (settings.kind) {
      case 'webhook':
        return openWebhook(settings, ways)
      case 'smtp':
        return openMail(settings, ways)
      case 'slack':
        return openSlack(settings, ways)
      default: {
        const never: never = settings
        return never
      }
    }
  })
}

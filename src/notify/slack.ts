import type { Receiver } from '../domain/notice.ts'
import type { Secret } from '../domain/secret.ts'
import { createPost, type Ways } from './post.ts'

export interface SlackSettings {
  readonly name: string
  /** Whoever has it may post. */
  readonly url: Secret
  readonly local: boolean
}

/** An incoming webhook of Slack (https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks), or of what takes the same. */
export function openSlack({ name, url, local }: SlackSettings, ways: Ways): Receiver {
  const post = createPost(ways, local)
  return {
    name,
    async send({ title, lines }, signal) {
      const text = [`Mayfly: ${title}`, ...lines, ways.issuer].map(harmless).join('\n')
      // Nothing in the text is markup, and no link is looked at.
      const how = {
        mrkdwn: false,
        parse: 'none',
        link_names: false,
        unfurl_links: false,
        unfurl_media: false,
      }
      await post(url.reveal(), { body: JSON.stringify({ text, ...how }) }, signal)
    },
  }
}

/** `<!channel>` and `<https://…|other text>` are markup even so, and others than Slack call people at a bare `@`. */
export function harmless(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('@', '@\u200b')
}

import { ADMIN } from '../admin/verbs.ts'
import { defineVerb } from '../frame/verb.ts'
import { whileWaiting } from '../frame/waiting.ts'
import { openAdminClient } from '../session/admin.ts'

const WHY = {
  timeout: 'It did not answer in time.',
  unreachable: 'It cannot be reached.',
  refused: 'It refused the message.',
  misconfigured: 'Its address or its certificate is not accepted.',
} as const

export const verb = defineVerb({
  description:
    'Sends a test message to a receiver of notifications, as the setting `notify` of the server names it. Ends with 1 unless the receiver took it.',
  arguments: [{ name: '<name>', description: 'the receiver' }],
  examples: { 'mayfly notify test ops': 'after changing the configuration' },
  json: async () => (await import('../../api/admin.ts')).TestedReceiver,
  ...ADMIN,
  run: async (context, _options, name) => {
    const client = await openAdminClient(context)
    const tested = await whileWaiting(context, `Sending to ${name}`, client.admin.notify.test(name))
    await context.out.show(tested, () =>
      tested.taken
        ? `${tested.name} took the message.`
        : `${tested.name} did not take the message. ${WHY[tested.reason ?? 'unreachable']} The log of the server says more.`,
    )
    return tested.taken ? 0 : 1
  },
})

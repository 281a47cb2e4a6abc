import Type from 'typebox'
import { defineKind, secretField, servePlugin } from '../../../src/plugin-sdk/plugin.ts'

/** Of no upstream: a credential says which version of the plugin issued it. `bundlePlugin` fills in the words in capitals. */
servePlugin(
  defineKind({
    type: 'PARROT-TYPE',
    title: 'Parrot',
    version: 'PARROT-VERSION',
    config: Type.Object(
      {
        says: Type.String({ description: 'What it says.' }),
        password: Type.String(secretField({ description: 'What it never says.' })),
      },
      { additionalProperties: false },
    ),
    revocation: 'exact',
    scopes: { forms: [{ form: 'say:<word>', gives: 'say a word' }], help: 'say:<word>.' },
    open: async ({ says }) => ({
      check: async () => [],
      issue: async ({ credentialId }) => ({
        secret: `${says} of PARROT-VERSION in ${process.env['PLUGIN_UNIX_SOCKET_DIR']}`,
        handle: { account: credentialId },
      }),
      revoke: async () => undefined,
      recover: (id: string) => ({ account: id }),
      [Symbol.asyncDispose]: async () => undefined,
    }),
  }),
)

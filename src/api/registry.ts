import { Type } from 'typebox'
import * as Field from './shared.ts'

const JWT = 'eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhZ18ifQ.c2ln'

/** https://distribution.github.io/distribution/spec/auth/token/. Programs send parameters of their own beside these. */
export const RegistryTokenQuery = Type.Object({
  service: Type.Optional(
    Field.text(
      'The registry, as it names itself. Ignored: a token is always for that of the backend.',
      'registry.example.com',
      { maxLength: 255 },
    ),
  ),
  scope: Type.Optional(
    Type.Array(Field.text('What the registry asked for.', 'repository:team/app:pull', { maxLength: 1024 }), {
      maxItems: 64,
      description:
        'Repeatable. The token has what the credential permits of it; without it, or where that is nothing, it permits nothing.',
    }),
  ),
})

export const RegistryTokenReply = Field.shown('RegistryToken', {
  token: Field.text('The program sends it to the registry as `Authorization: Bearer …`.', JWT),
  access_token: Field.text('The same.', JWT),
  expires_in: Field.count('How long it lasts, in seconds.', 300),
  issued_at: Field.timestamp('When it was issued.'),
})

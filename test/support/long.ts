/** True for `npm run test:long`, which runs every long form in full; `npm test` runs a sample of each. */
export const LONG = process.env['MAYFLY_LONG'] === '1'

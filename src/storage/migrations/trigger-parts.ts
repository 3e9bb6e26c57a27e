/** Parts of the triggers of the schema. */

/** With the schema of the service, for changes by other clients, such as psql. */
export const postgresFunction = 'LANGUAGE plpgsql SET search_path FROM CURRENT'

/** A UUID of version 7 of the time, so that the index by id has the order of lists and of the purge. */
export const idInSqlite = (at: string) =>
  `substr(printf('%012x', ${at}), 1, 8) || '-' || substr(printf('%012x', ${at}), 9) || '-7' ||
      lower(substr(hex(randomblob(2)), 1, 3) || '-8' || substr(hex(randomblob(2)), 1, 3) || '-' || hex(randomblob(6)))`

export const idInPostgres = (at: string) =>
  `substr(lpad(to_hex(${at}), 12, '0'), 1, 8) || '-' || substr(lpad(to_hex(${at}), 12, '0'), 9)
      || '-7' || substr(gen_random_uuid()::text, 16)`

/** A wait for an answer that a run has reached. */
export const isOpenAnswer = "NEW.kind = 'answer' AND NEW.status = 'open'"

/** A browser context begins to need a person to sign in. */
export const isSignInNeeded = 'NEW.needs_sign_in_since IS NOT NULL AND OLD.needs_sign_in_since IS NULL'

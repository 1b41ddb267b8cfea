/* Accounts, and a bank that moves money between them: a transfer is done or not done, and
 * never half. */
#ifndef BANK_ACTORS_H
#define BANK_ACTORS_H

#include <muster.h>

enum { ACCOUNTS = 16, FIRST = 1000, TIMEOUT_MS = 5000, KEPT_TIMEOUT_MS = 120000 };

/* Starts with the whole number that it has. Methods: withdraw and deposit take an amount,
 * show answers what there is. May be kept. */
extern const mu_actor_type account_type;

/* Has accounts with FIRST each. It starts with nil, or with true: then they are kept
 * actors, "account-0" and so on, which are anywhere, and may be there already. Methods:
 * transfer takes [from, to, amount], accounts answers their addresses. */
extern const mu_actor_type bank_type;

#endif

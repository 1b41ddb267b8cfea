/* Accounts, and a bank that moves money between them: a transfer is done or not done, and
 * never half. */
#ifndef BANK_ACTORS_H
#define BANK_ACTORS_H

#include <muster.h>

enum { ACCOUNTS = 16, FIRST = 1000, TIMEOUT_MS = 5000 };

/* Starts with the whole number that it has. Methods: withdraw and deposit take an amount,
 * show answers what there is. */
extern const mu_actor_type account_type;

/* Has accounts with FIRST each. Methods: transfer takes [from, to, amount], accounts
 * answers their addresses. */
extern const mu_actor_type bank_type;

#endif
